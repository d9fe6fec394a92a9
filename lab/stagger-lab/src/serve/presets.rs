use serde_json::{Value, json};

use super::reply::{Failure, Json};
use crate::simulate::{SystemIncident, mass_disconnects, system_incidents};
use stagger_terminal::plan::profiles_json;

/// Answers with the profiles and the incidents that the page offers.
pub(super) async fn answer() -> Result<Json, Failure> {
    let profiles: Value = serde_json::from_str(&profiles_json()?).unwrap_or_default();
    let incidents = mass_disconnects()?.into_iter().map(|one| {
        json!({
            "title": one.title(),
            "happened": one.happened(),
            "policies": [one.without_cure, one.with_cure],
            "settings": one.settings,
        })
    });
    let systems = system_incidents().map(|one| {
        json!({
            "title": one.title(),
            "happened": one.happened(),
            "reports": SystemIncident::variants().map(|variant| format!("/incident/{}/{variant}", one.name())),
        })
    });
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profiles": profiles["profiles"],
        "incidents": incidents.collect::<Vec<_>>(),
        "systems": systems.collect::<Vec<_>>(),
    })))
}
