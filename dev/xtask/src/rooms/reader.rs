//! Reads the items and paths of one file.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMacro, ItemMod, ItemUse, Macro, UseTree};

use super::source::{Import, Names, Source, absolute};

/// A leaf of a `use`, whose path is still as it was written, and the name that it gets. A glob has none.
pub(super) struct Use {
    pub(super) import: Import,
    pub(super) name: Option<String>,
}

/// Reads one file.
pub(super) struct Reader<'s> {
    pub(super) source: &'s mut Source,
    pub(super) file: &'s str,
    pub(super) module: Names,
    pub(super) uses: &'s mut Vec<Use>,
    /// The modules in files of their own.
    pub(super) submodules: Vec<Names>,
}

impl Reader<'_> {
    fn import(&self, path: Names, line: usize) -> Import {
        Import {
            file: self.file.to_owned(),
            line,
            module: self.module.clone(),
            path,
            is_of_macro: false,
            is_call: false,
        }
    }

    fn define(&mut self, name: String) {
        self.source.modules.entry(self.module.clone()).or_default().defined.insert(name);
    }

    /// Adds a path if it begins with `crate`, `self` or `super` and names more than that.
    fn add_path(&mut self, path: &[String], line: usize, is_of_macro: bool, is_call: bool) {
        let is_here = path.first().is_some_and(|first| ["crate", "self", "super"].contains(&first.as_str()));
        if let Some(path) = absolute(path, &self.module).filter(|path| is_here && !path.is_empty()) {
            let import = Import { is_of_macro, is_call, ..self.import(path, line) };
            self.source.imports.push(import);
        }
    }

    fn add_syn_path(&mut self, path: &syn::Path, is_call: bool) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.add_path(&names, line, false, is_call);
    }

    fn add_tree(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, before, line)),
            UseTree::Glob(_) => self.uses.push(Use { import: self.import(before.to_vec(), line), name: None }),
            UseTree::Name(leaf) if leaf.ident == "self" => {
                let name = before.last().cloned();
                self.uses.push(Use { import: self.import(before.to_vec(), line), name });
            }
            UseTree::Name(leaf) => {
                let name = Some(leaf.ident.to_string());
                self.uses.push(Use { import: self.import(with(&leaf.ident), line), name });
            }
            UseTree::Rename(leaf) => {
                let name = Some(leaf.rename.to_string());
                self.uses.push(Use { import: self.import(with(&leaf.ident), line), name });
            }
        }
    }

    /// Finds paths in the tokens of a macro, which may be anything: `crate::a::B`, `super::C`, `$crate::D`.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let is_punct =
            |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let is_of_macro = at > 0 && is_punct(at - 1, '$');
                    let mut path = vec![first.to_string()];
                    while let (true, true, Some(TokenTree::Ident(name))) =
                        (is_punct(at + 1, ':'), is_punct(at + 2, ':'), tokens.get(at + 3))
                    {
                        path.push(name.to_string());
                        at += 3;
                    }
                    if path.len() > 1 {
                        self.add_path(&path, first.span().start().line, is_of_macro, is_punct(at + 1, '!'));
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test) {
            return;
        }
        if let Some(name) = name_of(item) {
            self.define(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        if item.content.is_some() {
            self.source.modules.entry(self.module.clone()).or_default();
            visit::visit_item_mod(self, item);
        } else {
            self.submodules.push(self.module.clone());
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let line = item.use_token.span.start().line;
        self.add_tree(&item.tree, &[], line);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_syn_path(path, false);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.add_syn_path(&item.path, true);
        self.add_tokens(item.tokens.clone());
    }

    /// A macro for other crates is known by its name in the root.
    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if let Some(name) = &item.ident
            && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
        {
            self.source.exported_macros.insert(name.to_string(), self.module.clone());
        }
        visit::visit_item_macro(self, item);
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether an item is compiled for tests only: `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| requires_test(list.tokens.clone()))
}

fn requires_test(tokens: TokenStream) -> bool {
    let mut before = String::new();
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => {
            before = name.to_string();
            before == "test"
        }
        TokenTree::Group(group) => before == "all" && requires_test(group.stream()),
        _ => false,
    })
}
