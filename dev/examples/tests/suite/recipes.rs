//! The rules that the guide shows, as it shows them.

use std::fs;

#[path = "../../recipes/aws.rs"]
mod aws_rule;
#[path = "../../recipes/diesel.rs"]
mod diesel_rule;
#[path = "../../recipes/fred.rs"]
mod fred_rule;
#[path = "../../recipes/mysql_async.rs"]
mod mysql_async_rule;
#[path = "../../recipes/object_store.rs"]
mod object_store_rule;
#[path = "../../recipes/opendal.rs"]
mod opendal_rule;
#[path = "../../recipes/rusqlite.rs"]
mod rusqlite_rule;
#[path = "../../recipes/sea_orm.rs"]
mod sea_orm_rule;
#[path = "../../recipes/tokio_postgres.rs"]
mod tokio_postgres_rule;

pub(crate) use aws_rule::aws;
pub(crate) use diesel_rule::diesel;
pub(crate) use fred_rule::fred;
pub(crate) use mysql_async_rule::mysql_async;
pub(crate) use object_store_rule::object_store;
pub(crate) use opendal_rule::opendal;
pub(crate) use rusqlite_rule::rusqlite;
pub(crate) use sea_orm_rule::sea_orm;
pub(crate) use tokio_postgres_rule::tokio_postgres;

const PAGE: &str = include_str!("../../../../docs/guide/databases.md");

#[test]
fn the_guide_shows_or_links_every_rule_as_it_is_tested() {
    let recipes = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes")).unwrap();
    let mut shown = 0;
    for recipe in recipes {
        let path = recipe.unwrap().path();
        let code = fs::read_to_string(&path).unwrap();
        let is_shown = PAGE.contains(&format!("\n{code}```\n"));
        let name = path.file_name().unwrap().to_string_lossy();
        let is_linked = PAGE.contains(&format!("](../../dev/examples/recipes/{name})"));
        assert!(is_shown || is_linked, "docs/guide/databases.md does not show or link {}", path.display());
        shown += usize::from(is_shown);
    }
    let blocks = PAGE.lines().filter(|line| line.starts_with("```rust,ignore")).count();
    // That of the MongoDB driver is not compiled: the page says so.
    assert_eq!(shown + 1, blocks, "every block that is not compiled with the guide is a recipe");
}
