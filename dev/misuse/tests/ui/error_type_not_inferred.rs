use stagger::Policy;

async fn fetch() -> Result<u32, std::io::Error> {
    Ok(7)
}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, async || {
        let number = fetch().await?;
        Ok(number + 1)
    });
}
