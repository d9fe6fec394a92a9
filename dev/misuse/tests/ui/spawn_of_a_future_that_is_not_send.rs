use std::rc::Rc;

use stagger::Policy;

async fn fetch() -> Result<(), std::io::Error> {
    let name = Rc::new("api");
    tokio::task::yield_now().await;
    drop(name);
    Ok(())
}

fn main() {
    tokio::spawn(stagger::retry(&Policy::DEFAULT, fetch));
}
