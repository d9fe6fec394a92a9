use stagger::{Policy, blocking};

fn load() -> anyhow::Result<()> {
    blocking::retry(&Policy::DEFAULT, || anyhow::Ok(())).within(std::time::Duration::from_secs(1)).run()?;
    Ok(())
}

fn boxed() -> Result<(), Box<dyn std::error::Error>> {
    let load = || Err::<(), Box<dyn std::error::Error + Send + Sync>>("no".into());
    blocking::retry(&Policy::DEFAULT, load).detailed().run()?;
    Ok(())
}

fn main() {
    let _ = (load(), boxed());
}
