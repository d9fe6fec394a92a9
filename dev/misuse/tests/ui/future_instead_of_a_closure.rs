use stagger::Policy;

async fn fetch() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, fetch());
}
