use stagger::Policy;

fn main() {
    let name = String::from("api");
    let _ = stagger::retry(&Policy::DEFAULT, async move || Err::<(), _>(name.len()));
}
