//! What the readers find in files as people write them.

#[path = "suite/applications.rs"]
mod applications;
#[path = "suite/ci.rs"]
mod ci;
#[path = "suite/described.rs"]
mod described;
#[path = "suite/export.rs"]
mod export;
#[path = "suite/facts.rs"]
mod facts;
#[path = "suite/gateways.rs"]
mod gateways;
#[path = "suite/hazards.rs"]
mod hazards;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/kubernetes.rs"]
mod kubernetes;
#[path = "suite/libraries.rs"]
mod libraries;
#[path = "suite/meshes.rs"]
mod meshes;
#[path = "suite/proxies.rs"]
mod proxies;
#[path = "suite/restarts.rs"]
mod restarts;
