use serde_json::{Value, json};
use stagger_terminal::plan::profiles_json;

use super::reply::{Failure, Json};

/// Answers with the profiles that the page offers.
pub(super) async fn answer() -> Result<Json, Failure> {
    let profiles: Value = serde_json::from_str(&profiles_json()?).unwrap_or_default();
    Ok(Json(json!({ "version": env!("CARGO_PKG_VERSION"), "profiles": profiles["profiles"] })))
}
