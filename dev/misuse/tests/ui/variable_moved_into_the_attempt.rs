use stagger::Policy;

async fn send(_: String) -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let message = String::from("hello");
    let _ = stagger::retry(&Policy::DEFAULT, || send(message));
}
