use stagger::Policy;

fn load() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, || load());
}
