//! The modules of a crate and the paths that they name, read from its sources. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

use super::reader::{Reader, Use};
use crate::Result;
use crate::files::shown;

/// Names from the root of the crate: `["budget", "Tokens"]` is `crate::budget::Tokens`.
pub(crate) type Names = Vec<String>;

/// A crate.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(super) modules: BTreeMap<Names, Module>,
    /// Macros with `#[macro_export]`, which are named in the root, and the modules that define them.
    pub(super) exported_macros: BTreeMap<String, Names>,
    pub(crate) imports: Vec<Import>,
}

#[derive(Debug, Default)]
pub(super) struct Module {
    /// Items defined in it, submodules included.
    pub(super) defined: BTreeSet<String>,
    /// Other names by which items are known in it, and the paths that stand for them.
    renamed: BTreeMap<String, Names>,
    /// Modules whose names are all known in it.
    globs: Vec<Names>,
}

/// A path of the same crate that is named in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The module that names it.
    pub(crate) module: Names,
    pub(crate) path: Names,
    /// Whether users of a macro name it: they see what the root exports, and nothing else.
    pub(crate) is_of_macro: bool,
    /// Whether it is a macro that is called.
    pub(crate) is_call: bool,
}

/// What a path stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// The module that defines the item, or that the path names.
    Module(Names),
    /// The module that defines the macro.
    Macro(Names),
    /// An item of another crate, with the crate's name first.
    Other(Names),
}

impl Source {
    /// Reads a crate, starting with `lib.rs` or `main.rs` of this directory.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let root = ["lib.rs", "main.rs"].map(|name| directory.join(name)).into_iter().find(|path| path.is_file());
        let root = root.ok_or_else(|| format!("{} has no lib.rs or main.rs", directory.display()))?;
        let mut source = Self::default();
        let mut uses = Vec::new();
        source.read_file(&root, directory, Vec::new(), &mut uses)?;
        // Which names begin a path in this crate is known only now.
        for Use { import, name } in uses {
            source.add_use(import, name);
        }
        Ok(source)
    }

    /// Returns whether `path` is a module.
    pub(crate) fn is_module(&self, path: &[String]) -> bool {
        self.modules.contains_key(path)
    }

    /// Follows the path of an import to the module that defines its item. An unknown name, such as one that a macro
    /// defines, belongs to the module that it is named in.
    pub(crate) fn resolve(&self, import: &Import) -> Definition {
        let path = &import.path;
        // A module may have the name of a macro.
        if let [name] = &path[..]
            && let Some(module) = self.exported_macros.get(name)
            && (import.is_call || !self.is_module(path))
        {
            return Definition::Macro(module.clone());
        }
        // More re-exports than any item has, so that a cycle of names ends.
        self.follow(path, 32)
    }

    fn follow(&self, path: &[String], depth: u32) -> Definition {
        self.find(path, depth).unwrap_or_else(|| Definition::Module(self.module_of(path).to_vec()))
    }

    /// Follows a path to a known name.
    fn find(&self, path: &[String], depth: u32) -> Option<Definition> {
        let at = self.module_of(path);
        let Some((name, rest)) = path[at.len()..].split_first() else { return Some(Definition::Module(at.to_vec())) };
        let module = self.modules.get(at)?;
        if depth == 0 {
            return None;
        }
        if let Some(target) = module.renamed.get(name) {
            let target = [target, rest].concat();
            // The first name of another crate is no module of this one.
            return match target.split_first() {
                Some((first, names)) if first == "crate" => Some(self.follow(names, depth - 1)),
                _ => Some(Definition::Other(target)),
            };
        }
        if module.defined.contains(name) {
            return Some(Definition::Module(at.to_vec()));
        }
        let all = &path[at.len()..];
        module.globs.iter().find_map(|glob| self.find(&[glob.as_slice(), all].concat(), depth - 1))
    }

    /// Returns the longest part of the path that names a module.
    fn module_of<'p>(&self, path: &'p [String]) -> &'p [String] {
        let length = (0..=path.len()).rev().find(|&length| self.is_module(&path[..length]));
        &path[..length.unwrap_or_default()]
    }

    fn read_file(&mut self, file: &Path, directory: &Path, module: Names, uses: &mut Vec<Use>) -> Result {
        let text = fs::read_to_string(file)?;
        let syntax = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let file = shown(file);
        let mut reader = Reader { source: self, file: &file, module, uses, submodules: Vec::new() };
        reader.source.modules.entry(reader.module.clone()).or_default();
        reader.visit_file(&syntax);
        for submodule in reader.submodules {
            let at = submodule.iter().fold(directory.to_owned(), |path, name| path.join(name));
            self.read_file(&file_of(&at)?, directory, submodule, uses)?;
        }
        Ok(())
    }

    fn add_use(&mut self, mut import: Import, name: Option<String>) {
        let Some(first) = import.path.first() else { return };
        let is_here = ["crate", "self", "super"].contains(&first.as_str());
        let known = self.modules.get(&import.module);
        let target = if is_here {
            absolute(&import.path, &import.module)
        } else if known.is_some_and(|module| module.defined.contains(first)) {
            Some([&import.module[..], &import.path].concat())
        } else {
            None
        };
        let module = self.modules.entry(import.module.clone()).or_default();
        match (target, name) {
            (Some(path), Some(name)) => {
                module.renamed.insert(name, [&["crate".to_owned()], &path[..]].concat());
                import.path = path;
                self.imports.push(import);
            }
            (Some(path), None) => {
                module.globs.push(path.clone());
                import.path = path;
                self.imports.push(import);
            }
            (None, Some(name)) => {
                module.renamed.insert(name, import.path);
            }
            (None, None) => {}
        }
    }
}

/// Returns the file of a module, by the path that its name would have without an extension.
fn file_of(at: &Path) -> Result<PathBuf> {
    let candidates = [at.with_extension("rs"), at.join("mod.rs")];
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("no file for the module {}", at.display()).into())
}

/// Returns the names from the root that a path with `crate`, `self` or `super` stands for in a module.
pub(super) fn absolute(path: &[String], module: &[String]) -> Option<Names> {
    let mut at = module.to_vec();
    let mut names = path.iter().peekable();
    if names.next_if(|name| *name == "crate").is_some() {
        at.clear();
    } else {
        names.next_if(|name| *name == "self");
        while names.next_if(|name| *name == "super").is_some() {
            at.pop()?;
        }
    }
    at.extend(names.cloned());
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn read(files: &[(&str, &str)]) -> Source {
        Source::read(tree(files).path()).unwrap()
    }

    /// Returns what `module` imports from the crate, in the order of the file.
    fn imported(source: &Source, module: &str) -> Vec<String> {
        let of_module = source.imports.iter().filter(|import| import.module.join("::") == module);
        let mut imports: Vec<_> = of_module.map(|import| (import.line, import.path.join("::"))).collect();
        imports.sort();
        imports.into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn paths_are_read_from_the_root_in_every_form() {
        let a = "\
            use core::fmt;\n\
            use crate::b::{self, Two as Other, inner::Three};\n\
            use super::b::*;\n\
            fn f(_: crate::b::Four<self::inner::Five>) -> fmt::Result {\n\
            super::b::six::<crate::b::Seven>() }\n\
            mod inner { use super::super::b::Eight; pub struct Five; }\n";
        let source = read(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub mod inner {}")]);
        let want = ["b", "b::Two", "b::inner::Three", "b", "a::inner::Five", "b::Four", "b::Seven", "b::six"];
        assert_eq!(imported(&source, "a"), want);
        assert_eq!(imported(&source, "a::inner"), ["b::Eight"]);
    }

    #[test]
    fn tests_and_documentation_are_left_out() {
        let a = "\
            //! See [`crate::b::One`].\n\
            #[cfg(test)] mod tests { use crate::b::Two; }\n\
            #[cfg(test)] mod more;\n\
            #[cfg(all(test, not(loom)))] use crate::b::Three;\n\
            #[cfg(test)] fn f() { crate::b::four(); }\n\
            /// See [`crate::b::Five`].\n\
            #[cfg(not(test))] use crate::b::Six;\n\
            #[cfg(any(test, feature = \"x\"))] use crate::b::Seven;\n";
        let source = read(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "")]);
        assert_eq!(imported(&source, "a"), ["b::Six", "b::Seven"]);
    }

    #[test]
    fn paths_in_macros_are_found() {
        let a = "\
            wraps! { fn f(x: crate::b::One) {\n\
            [super::b::two(x)] } other::crate_name }\n\
            macro_rules! m { () => { $crate::b::Three } }\n\
            crate::n!(crate::b::Four);\n\
            wraps!(crate::n!(), stagger::b::Five);\n\
            use crate::n;";
        let source = read(&[
            ("lib.rs", "mod a; mod b; mod n;"),
            ("a.rs", a),
            ("b.rs", ""),
            ("n.rs", "#[macro_export] macro_rules! n { () => {} }"),
        ]);
        assert_eq!(imported(&source, "a"), ["b::One", "b::two", "b::Three", "b::Four", "n", "n", "n"]);
        let [of_macro] = &source.imports.iter().filter(|import| import.is_of_macro).collect::<Vec<_>>()[..] else {
            panic!("{source:?}")
        };
        assert_eq!(of_macro.path, ["b", "Three"]);
        // The macro and its module have the same name.
        for import in source.imports.iter().filter(|import| import.path == ["n"]) {
            let definition = if import.is_call { Definition::Macro } else { Definition::Module };
            assert_eq!((source.resolve(import), import.is_call), (definition(vec!["n".to_owned()]), import.line < 6));
        }
    }

    #[test]
    fn definitions_are_found_through_every_kind_of_re_export() {
        let source = read(&[
            (
                "lib.rs",
                "mod a; mod b; pub use a::A; pub use b::B as Renamed; pub use b::deep::*; pub use self::P as Q; pub use self::Q as P; pub use b::Made;",
            ),
            ("a.rs", "pub use crate::b::C; pub use core::fmt; pub struct A;"),
            ("b.rs", "pub struct B; pub struct C; pub mod deep { pub enum D { E } } make! { pub struct Made; }"),
        ]);
        let resolve = |path: &str| {
            let path = path.split("::").map(str::to_owned).collect();
            let import =
                Import { file: String::new(), line: 1, module: vec![], path, is_of_macro: false, is_call: false };
            source.resolve(&import)
        };
        for (path, want) in [
            ("A", "a"),
            ("Renamed", "b"),
            ("D::E", "b::deep"),
            ("a::C", "b"),
            ("Made", "b"),
            ("a", "a"),
            ("a::defined_by_a_macro", "a"),
            ("b::deep::D", "b::deep"),
        ] {
            let want = want.split("::").map(str::to_owned).collect();
            assert_eq!(resolve(path), Definition::Module(want), "{path}");
        }
        assert_eq!(resolve("a::fmt::Write"), Definition::Other(["core", "fmt", "Write"].map(str::to_owned).to_vec()));
        // Names that stand for each other end the search.
        assert_eq!(resolve("P"), Definition::Module(vec![]));
    }

    #[test]
    fn a_crate_that_cannot_be_read_is_an_error_with_the_file() {
        let error = |files: &[(&str, &str)]| Source::read(tree(files).path()).unwrap_err().to_string();
        assert!(error(&[("a.rs", "")]).ends_with("has no lib.rs or main.rs"));
        assert!(error(&[("main.rs", "mod a;")]).contains("no file for the module"));
        let text = error(&[("main.rs", "mod a;"), ("a/mod.rs", "fn")]);
        assert!(text.contains("a/mod.rs: "), "{text}");
    }
}
