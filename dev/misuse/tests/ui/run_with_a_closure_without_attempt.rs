use stagger::{Policy, Retrier};

async fn load() {
    let mut connection = Vec::new();
    let _ = Retrier::new(Policy::DEFAULT)
        .run_with(&mut connection, async |connection: &mut Vec<u32>| {
            connection.push(1);
            Err::<(), _>("no")
        })
        .await;
}

fn main() {
    let _ = load();
}
