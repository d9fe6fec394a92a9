//! The rooms of a crate are the files and directories beside its `lib.rs`. A reader keeps a dozen of them in mind, and
//! reads them from the bottom up if their imports have one direction.

mod order;
mod reader;
mod source;
#[cfg(test)]
mod tree;

use core::fmt;
use std::collections::BTreeSet;
use std::path::Path;

use crate::Result;
use crate::files::entries;
use crate::rooms::order::fewest_against;
use crate::rooms::source::{Definition, Import, Names, Source};
use crate::workspace::root;

/// The most rooms in one directory.
const MOST_ROOMS: usize = 12;

/// The most imports against the direction in one crate.
const MOST_AGAINST: usize = 2;

/// The crates that are checked, and the modules of each whose entries are rooms: the root, and others by their path.
const CRATES: [(&str, &[&str]); 11] = [
    ("stagger-core", &[""]),
    ("stagger", &[""]),
    ("stagger-http", &[""]),
    ("stagger-ws", &["", "client", "server"]),
    ("stagger-lease", &[""]),
    ("stagger-config", &["", "formats", "formats/cluster"]),
    ("stagger-traces", &[""]),
    ("stagger-redis", &["", "store"]),
    ("stagger-sim", &[""]),
    ("stagger-lint", &[""]),
    ("stagger-cli", &[""]),
];

/// The imports that may be against the direction, at most [`MOST_AGAINST`] in each crate.
const ALLOWED: &[Allowed] = &[];

/// The crates of the workspace begin with this: their items are imported from the crate that defines them.
const WORKSPACE: &str = "stagger";

/// An import that may be against the direction.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    /// The crate, such as `stagger-core`.
    package: &'static str,
    /// The room that imports, such as `budget`.
    room: &'static str,
    /// What it imports, such as `crate::breaker::CircuitBreaker`.
    path: &'static str,
    reason: &'static str,
}

/// Checks the rooms of every crate, prints their order and every import against it, and returns a summary.
///
/// # Errors
///
/// If a directory has too many rooms, if an import against the direction is not in [`ALLOWED`], or if an import does not
/// name the module that defines the item.
pub(crate) fn check() -> Result<String> {
    let mut problems = Vec::new();
    let mut rooms = 0;
    for (package, modules) in CRATES {
        let allowed: Vec<_> = ALLOWED.iter().filter(|allowed| allowed.package == package).copied().collect();
        let plan = Plan::read(&root().join("crates").join(package).join("src"), modules, &allowed)?;
        println!("{package}{plan}\n");
        rooms += plan.floors.iter().map(|floor| floor.rooms.len()).sum::<usize>();
        problems.extend(plan.problems().into_iter().map(|problem| format!("{package}: {problem}")));
    }
    let summary = format!("{rooms} rooms, {} imports against the direction", ALLOWED.len());
    if problems.is_empty() { Ok(summary) } else { Err(problems.join("; ").into()) }
}

/// The rooms of one crate.
#[derive(Debug, Default)]
struct Plan {
    floors: Vec<Floor>,
    /// The allowed imports that the source has, as `file:line: path`, with the reason.
    allowed: Vec<String>,
    /// The allowed imports that the source does not have.
    unused: Vec<String>,
    /// Imports that do not name the module that defines the item, as `file:line: path, defined in …`.
    misnamed: Vec<String>,
}

/// The rooms in one directory.
#[derive(Debug)]
struct Floor {
    /// The module whose entries they are; empty for the root.
    module: String,
    /// From the bottom up: each imports from those before it. Alphabetical if there is a `tangle`.
    rooms: Vec<String>,
    /// Imports from rooms that come later, as `file:line: path`.
    against: Vec<String>,
    /// The rooms of a cycle that is too long to be ordered.
    tangle: Vec<String>,
}

impl Plan {
    /// Reads the crate in `directory`, which has a `lib.rs` or `main.rs`.
    fn read(directory: &Path, modules: &[&str], allowed: &[Allowed]) -> Result<Self> {
        let source = Source::read(directory)?;
        let mut plan = Self::default();
        let mut unused = allowed.to_vec();
        for name in modules {
            let rooms = rooms_in(&directory.join(name))?;
            let mut imports = imports_between(&source, &names(name), &rooms);
            imports.retain(|&(from, _, import)| {
                let is_same = |allowed: &&Allowed| allowed.room == rooms[from] && allowed.path == path(import);
                let found = allowed.iter().find(is_same);
                plan.allowed.extend(found.map(|found| format!("{}: {}", place(import), found.reason)));
                unused.retain(|allowed| !is_same(&allowed));
                found.is_none()
            });
            plan.floors.push(Floor::of((*name).to_owned(), rooms, &imports));
        }
        plan.unused = unused.iter().map(|allowed| format!("{} in {}", allowed.path, allowed.room)).collect();
        let misnamed = source.imports.iter().filter_map(|import| {
            let definition = modules.iter().find_map(|module| defined_elsewhere(&source, &names(module), import))?;
            Some(format!("{}, defined in {definition}", place(import)))
        });
        plan.misnamed = misnamed.collect::<BTreeSet<_>>().into_iter().collect();
        Ok(plan)
    }

    /// Returns what exceeds the limits.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for Floor { module, rooms, against, tangle } in &self.floors {
            let place = if module.is_empty() { String::new() } else { format!(" in {module}") };
            if rooms.len() > MOST_ROOMS {
                problems.push(format!("{} rooms{place}, more than {MOST_ROOMS}", rooms.len()));
            }
            if !against.is_empty() {
                problems.push(format!("{} imports{place} against the direction", against.len()));
            }
            if !tangle.is_empty() {
                problems.push(format!("{} rooms{place} in one cycle", tangle.len()));
            }
        }
        if self.allowed.len() > MOST_AGAINST {
            problems.push(format!("{} allowed imports, more than {MOST_AGAINST}", self.allowed.len()));
        }
        if !self.unused.is_empty() {
            problems.push(format!("allowed, but not in the source: {}", self.unused.join(", ")));
        }
        if !self.misnamed.is_empty() {
            problems.push(format!("{} imports do not name the module that defines the item", self.misnamed.len()));
        }
        problems
    }
}

impl Floor {
    fn of(module: String, rooms: Vec<String>, imports: &[(usize, usize, &Import)]) -> Self {
        let mut table = vec![vec![0; rooms.len()]; rooms.len()];
        for (from, to, _) in imports {
            table[*from][*to] += 1;
        }
        match fewest_against(&table) {
            Ok(order) => {
                let level = |room: usize| order.iter().position(|&other| other == room);
                let against = imports.iter().filter(|(from, to, _)| level(*to) > level(*from));
                let against = against.map(|(.., import)| place(import)).collect();
                let rooms = order.iter().map(|&room| rooms[room].clone()).collect();
                Self { module, rooms, against, tangle: Vec::new() }
            }
            Err(cycle) => {
                let tangle = cycle.into_iter().map(|room| rooms[room].clone()).collect();
                Self { module, rooms, against: Vec::new(), tangle }
            }
        }
    }
}

/// Returns the rooms in a directory, in alphabetical order.
fn rooms_in(directory: &Path) -> Result<Vec<String>> {
    let mut rooms = BTreeSet::new();
    for path in entries(directory)? {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() || is_source && !["lib", "main", "mod"].contains(&name.as_str()) {
            rooms.insert(name);
        }
    }
    Ok(rooms.into_iter().collect())
}

/// Returns the imports from one room to another, each path once per file.
fn imports_between<'s>(source: &'s Source, module: &[String], rooms: &[String]) -> Vec<(usize, usize, &'s Import)> {
    let room_of = |path: &[String]| {
        let name = path.strip_prefix(module)?.first()?;
        rooms.iter().position(|room| room == name)
    };
    let mut seen = BTreeSet::new();
    let between = source.imports.iter().filter_map(|import| {
        let (Definition::Module(definition) | Definition::Macro(definition)) = source.resolve(import) else {
            return None;
        };
        let (from, to) = (room_of(&import.module)?, room_of(&definition)?);
        (from != to && seen.insert((&import.file, &import.path))).then_some((from, to, import))
    });
    between.collect()
}

/// Returns where the item of an import is defined, if that is another room of `module`, or another crate, than the import
/// names. Outside of the module, its own re-exports are what it shows.
fn defined_elsewhere(source: &Source, module: &[String], import: &Import) -> Option<String> {
    if import.is_of_macro || !import.module.starts_with(module) {
        return None;
    }
    match source.resolve(import) {
        Definition::Other(names) => names[0].starts_with(WORKSPACE).then(|| names.join("::")),
        // Macros with `#[macro_export]` have no other path than the one in the root.
        Definition::Macro(_) => None,
        Definition::Module(definition) => {
            let named = import.path.strip_prefix(module)?.first()?;
            let room = definition.strip_prefix(module)?.first()?;
            (named != room).then(|| format!("crate::{}", definition.join("::")))
        }
    }
}

fn names(module: &str) -> Names {
    module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn path(import: &Import) -> String {
    format!("crate::{}", import.path.join("::"))
}

fn place(import: &Import) -> String {
    format!("{}:{}: {}", import.file, import.line, path(import))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.floors.iter().try_for_each(|floor| write!(f, "{floor}"))?;
        self.allowed.iter().try_for_each(|import| write!(f, "\n  allowed: {import}"))?;
        self.misnamed.iter().try_for_each(|import| write!(f, "\n  not the definition: {import}"))
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_empty() {
            write!(f, "\n{}", self.module)?;
        }
        write!(f, ": {} rooms, from the bottom up: {}", self.rooms.len(), self.rooms.join(", "))?;
        if !self.tangle.is_empty() {
            write!(f, "\n  one cycle: {}", self.tangle.join(", "))?;
        }
        self.against.iter().try_for_each(|import| write!(f, "\n  against the direction: {import}"))
    }
}

#[cfg(test)]
mod tests {
    use super::tree::tree;
    use super::*;

    const ROOT: &[&str] = &[""];

    fn plan(files: &[(&str, &str)], modules: &[&str], allowed: &[Allowed]) -> Plan {
        Plan::read(tree(files).path(), modules, allowed).unwrap()
    }

    /// `top` imports two items of `middle`, which imports `bottom`, which imports `top`.
    const CYCLE: [(&str, &str); 4] = [
        ("lib.rs", "mod bottom; mod middle; mod top;"),
        ("bottom.rs", "pub struct B;\nfn f() -> crate::top::T { crate::top::T }"),
        ("middle/mod.rs", "mod inner; pub use inner::{M, N};"),
        ("middle/inner.rs", "use crate::bottom::B; use super::super::bottom::C; pub struct M(B); pub struct N;"),
    ];

    fn cycle() -> Vec<(&'static str, &'static str)> {
        [&CYCLE[..], &[("top.rs", "use crate::middle::{M, N}; pub struct T(M, N);")]].concat()
    }

    fn allowed(room: &'static str, path: &'static str) -> Allowed {
        Allowed { package: "", room, path, reason: "it is small" }
    }

    #[test]
    fn rooms_are_ordered_so_that_the_fewest_imports_are_against_it() {
        let plan = plan(&cycle(), ROOT, &[]);
        let [floor] = &plan.floors[..] else { panic!("{plan:?}") };
        assert_eq!(floor.rooms, ["bottom", "middle", "top"]);
        // Named twice in the file, and imported once.
        assert_eq!(floor.against.len(), 1, "{plan}");
        assert!(floor.against[0].ends_with("bottom.rs:2: crate::top::T"), "{plan}");
        assert_eq!(plan.problems(), ["1 imports against the direction"]);
    }

    #[test]
    fn allowed_imports_are_shown_with_their_reason_and_are_no_problem() {
        let plan = plan(&cycle(), ROOT, &[allowed("bottom", "crate::top::T")]);
        assert_eq!(plan.problems(), Vec::<String>::new());
        assert!(plan.to_string().contains("bottom.rs:2: crate::top::T: it is small"), "{plan}");
    }

    #[test]
    fn allowed_imports_are_few_and_exist() {
        let unused = plan(&cycle(), ROOT, &[allowed("bottom", "crate::top::T"), allowed("top", "crate::bottom::T")]);
        assert_eq!(unused.problems(), ["allowed, but not in the source: crate::bottom::T in top"]);
        let three = [
            allowed("bottom", "crate::top::T"),
            allowed("top", "crate::middle::M"),
            allowed("top", "crate::middle::N"),
        ];
        assert_eq!(plan(&cycle(), ROOT, &three).problems(), ["3 allowed imports, more than 2"]);
    }

    #[test]
    fn an_import_through_a_re_export_counts_for_the_room_that_defines_the_item() {
        let files = [
            ("lib.rs", "mod a; mod b; mod facade; pub use b::B; pub use stagger_core::Policy; pub use http::Method;"),
            ("a.rs", "use crate::B; use crate::Policy; use crate::Method; use crate::facade::C; pub struct A;"),
            ("b.rs", "pub struct B; pub struct C; fn f(_: super::a::A) {}"),
            ("facade.rs", "pub use crate::b::C;"),
        ];
        let plan = plan(&files, ROOT, &[]);
        let misnamed = plan.misnamed.iter().map(|line| line.split_once(".rs:1: ").unwrap().1).collect::<Vec<_>>();
        let want = [
            "crate::B, defined in crate::b",
            "crate::Policy, defined in stagger_core::Policy",
            "crate::facade::C, defined in crate::b",
        ];
        assert_eq!(misnamed, want);
        // `a` imports two items of `b`, which imports one of `a`.
        assert_eq!(plan.floors[0].against.len(), 1, "{plan}");
        assert!(plan.floors[0].against[0].ends_with("b.rs:1: crate::a::A"), "{plan}");
    }

    #[test]
    fn files_and_directories_are_rooms_and_the_limit_holds_for_each_directory() {
        let rooms: Vec<_> = ('a'..='m').map(|name| (format!("client/{name}.rs"), String::new())).collect();
        let declared: String = ('a'..='m').map(|name| format!("mod {name};")).collect();
        let others = [
            ("lib.rs", "mod client; mod twice;"),
            ("contract.md", ""),
            ("twice.rs", "mod inner;"),
            ("twice/inner.rs", "use crate::client::a::A;"),
            ("client/mod.rs", declared.as_str()),
        ];
        let rooms = rooms.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let plan = plan(&rooms.chain(others).collect::<Vec<_>>(), &["", "client"], &[]);
        assert_eq!(plan.floors[0].rooms, ["client", "twice"]);
        assert_eq!(plan.problems(), ["13 rooms in client, more than 12"]);
    }

    #[test]
    fn outside_of_a_module_its_re_exports_are_its_interface() {
        let files = [
            ("lib.rs", "mod client; mod other;"),
            ("other.rs", "use crate::client::Handle;"),
            ("client/mod.rs", "mod handle; mod task; pub use handle::Handle;"),
            ("client/handle.rs", "pub struct Handle;"),
            ("client/task.rs", "use super::Handle;"),
        ];
        let plan = plan(&files, &["", "client"], &[]);
        assert_eq!(plan.misnamed.len(), 1, "{plan}");
        let want = "task.rs:1: crate::client::Handle, defined in crate::client::handle";
        assert!(plan.misnamed[0].ends_with(want), "{plan}");
    }

    #[test]
    fn rooms_in_one_long_cycle_are_reported() {
        let text = |room: usize| format!("use crate::r{next}::X{next}; pub struct X{room};", next = (room + 1) % 17);
        let rooms: Vec<_> = (0..17).map(|room| (format!("r{room}.rs"), text(room))).collect();
        let declared: String = (0..17).map(|room| format!("mod r{room};")).collect();
        let files: Vec<_> = rooms.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let plan = plan(&[&files[..], &[("lib.rs", declared.as_str())]].concat(), ROOT, &[]);
        assert_eq!(plan.problems(), ["17 rooms, more than 12", "17 rooms in one cycle"]);
    }

    #[test]
    fn every_checked_directory_exists() {
        for (package, modules) in CRATES {
            let source = root().join("crates").join(package).join("src");
            assert!(modules.iter().all(|module| source.join(module).is_dir()), "{package}");
        }
    }
}
