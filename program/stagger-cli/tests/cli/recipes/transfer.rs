//! git, rsync and psql.

use std::fs;

use stagger_kit::{Postgres, Program, Stream};

use super::bench::Bench;
use super::page::{code, with};
use super::site::Site;
use crate::origin::{Answer, Origin};
use crate::support::{PATIENCE, Running, eventually, see};

const URL: &str = "https://git.example/app.git";

/// Creates a repository that a web server can serve as files.
fn repository(bench: &Bench) {
    let script = "git init -q work && cd work && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first \
                  && cd .. && git clone -q --bare work site/app.git && git -C site/app.git update-server-info";
    bench.see(script).exits(0);
}

#[test]
fn git_is_retried_after_a_failure_of_the_server() {
    let bench = Bench::new();
    repository(&bench);
    let site = Site::start(bench.files.path("site"), &["503 Busy", "429 Too Many Requests"]);
    let url = format!("http://{}/app.git", site.authority);
    let seen = bench.see(&with(&code("git")[0], &[(URL, &url)]));
    seen.exits(0).says("returned error: 503").says("returned error: 429").says("attempt=3/5 result=ok");
    assert!(bench.files.path("app/.git").is_dir());
}

#[test]
fn git_is_retried_if_it_cannot_connect_and_not_if_the_repository_is_missing() {
    let bench = Bench::new();
    let line = &code("git")[0];
    bench.see(&with(line, &[(URL, &Origin::nowhere())])).exits(128).says("attempt=5/5");
    for status in ["404 Not Found", "401 Unauthorized", "403 Forbidden"] {
        let answer: &'static [&'static str] = match status {
            "401 Unauthorized" => &["401 Unauthorized\r\nWWW-Authenticate: Basic realm=x"],
            "403 Forbidden" => &["403 Forbidden"],
            _ => &[],
        };
        let site = Site::start(bench.files.path("site"), answer);
        let url = format!("http://{}/app.git", site.authority);
        bench.see(&with(line, &[(URL, &url)])).exits(128).says("attempt=1/5").says("reason=not-retry-if");
    }
}

#[test]
fn git_does_not_ask_for_a_password_on_a_terminal() {
    needs!("git", "script");
    let bench = Bench::new();
    let site = Site::start(bench.files.path("site"), &["401 Unauthorized\r\nWWW-Authenticate: Basic realm=x"]);
    let line = with(&code("git")[0], &[(URL, &format!("http://{}/app.git", site.authority))]);
    let mut terminal = bench.shell("exec script --quiet --return --command \"$0\" /dev/null");
    let seen = see(terminal.arg(line));
    assert!(seen.exits(128).stdout.contains("terminal prompts disabled"), "{seen:?}");
}

#[test]
fn a_clone_that_is_ended_by_the_time_limit_leaves_nothing() {
    let bench = Bench::new();
    let silent = Origin::start(&[Answer::Silence]);
    let url = format!("{}app.git", silent.url());
    let line = with(&code("git")[0], &[(URL, &url), ("-t 5m", "-t 300ms"), ("-n 5", "-n 1")]);
    bench.see(&line).exits(124).says("result=timeout");
    assert!(!bench.files.path("app").exists());
}

#[test]
fn rsync_is_retried_if_ssh_has_no_connection_and_not_for_a_missing_directory() {
    needs!("rsync");
    let bench = Bench::new();
    // As ssh does: the first word is the host, and the rest its command.
    bench.failing(
        "ssh",
        2,
        "ssh: connect to host backup.example port 22: Connection refused",
        255,
        "shift\nexec \"$@\"",
    );
    let from = bench.path("from/");
    let to = format!("backup.example:{}", bench.path("to/"));
    fs::create_dir(&from).unwrap();
    fs::write(bench.path("from/photo"), "light").unwrap();
    let line = with(&code("rsync")[0], &[("backup.example:/srv/photos/", "TO"), ("/srv/photos/", &from), ("TO", &to)]);
    // rsync ends with 12 if it writes to ssh after that has ended, and otherwise with its exit code, 255.
    see(bench.shell(&line).env("RSYNC_RSH", "ssh"))
        .exits(0)
        .says("attempt=2/6 result=exit:")
        .says("attempt=3/6 result=ok");
    assert_eq!(fs::read_to_string(bench.path("to/photo")).unwrap(), "light");
    let line = with(&line, &[(&*from, &bench.path("missing/"))]);
    see(bench.shell(&line).env("RSYNC_RSH", "ssh")).exits(23).says("attempt=1/6 result=exit:23");
}

const MIGRATION: &str = "insert into effect values (1);\nselect pg_advisory_xact_lock(7);\n";

#[test]
fn a_migration_takes_effect_once_although_the_server_restarts_in_its_middle() {
    needs!("psql");
    let bench = Bench::new();
    bench.files.write("migrate.sql", MIGRATION);
    let mut postgres = Postgres::start().unwrap();
    postgres.sql("create table effect (id int)").unwrap();
    let mut holder = Program::find("psql").unwrap().arg(postgres.url()).arg("-XqAt").input_open().spawn().unwrap();
    holder.write(b"select pg_advisory_lock(7); select 'held';\n").unwrap();
    holder.wait_for(Stream::Stdout, "held", PATIENCE).unwrap();
    // As many attempts as the restart takes.
    let line = with(&code("psql")[0], &[("-d 1s -n 6", "-n 1000 --cap 50ms")]);
    let running = Running::start(bench.shell(&line).env("DATABASE_URL", postgres.url()));
    eventually("the migration waits in its middle", || {
        let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
        postgres.sql(waiting).is_ok_and(|count| count.trim() == "1")
    });
    postgres.server().restart().unwrap();
    running.end().exits(0).says("attempt=1/1000 result=exit:2");
    assert_eq!(postgres.sql("select count(*) from effect").unwrap().trim(), "1");
}

#[test]
fn an_error_of_the_script_and_a_missing_database_are_not_retried() {
    needs!("psql");
    let bench = Bench::new();
    bench.files.write("migrate.sql", "select * from missing;\n");
    let postgres = Postgres::start().unwrap();
    let line = &code("psql")[0];
    let run = |url: String| see(bench.shell(line).env("DATABASE_URL", url));
    run(postgres.url()).exits(3).says("attempt=1/6 result=exit:3");
    run(postgres.url().replace("/postgres", "/missing")).exits(2).says("attempt=1/6").says("reason=stop-if");
}
