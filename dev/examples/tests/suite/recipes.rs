//! The rules that the guide shows, as it shows them.

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
