use stagger::{Policy, Retrier};

async fn query(connection: &mut Vec<u32>) -> Result<(), std::io::Error> {
    connection.push(1);
    Ok(())
}

fn main() {
    let mut connection = Vec::new();
    let _ = Retrier::new(Policy::DEFAULT).run(async || query(&mut connection).await);
}
