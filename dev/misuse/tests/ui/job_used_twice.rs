use stagger::queue::RetryQueue;
use stagger::time::Tokio;

async fn work(queue: &mut RetryQueue<String, Tokio>) {
    while let Some(Ok(job)) = queue.next().await {
        let _ = job.succeeded();
        let _ = queue.push_failed(job, &std::fmt::Error);
    }
}

fn main() {}
