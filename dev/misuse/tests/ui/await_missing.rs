use stagger::Policy;

async fn fetch() -> Result<u32, std::io::Error> {
    Ok(7)
}

async fn page() -> Result<u32, std::io::Error> {
    Ok(stagger::retry(&Policy::DEFAULT, fetch)?)
}

fn main() {
    let _ = page();
}
