//! Reads the workspace's own Rust sources: their modules, product lines, functions and imports.
//!
//! A *product line* is a line that is neither blank nor a comment and is not part of an item that
//! only a test build compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::{Result, at};

/// The crates that a user's binary is made of, from the lowest layer up.
pub(crate) const PRODUCT: [&str; 12] = [
    "embedding",
    "text",
    "note",
    "session",
    "store",
    "recall",
    "sync",
    "distill",
    "app",
    "mcp",
    "web",
    "cli",
];

/// A path of module names, from the crate's root: `["hook", "deadline"]`.
type ModulePath = Vec<String>;

/// A crate as its files and modules.
pub(crate) struct Crate {
    pub(crate) files: Vec<SourceFile>,
    /// Index in `files` of each module.
    modules: BTreeMap<ModulePath, usize>,
}

/// One source file that is part of a product build.
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    /// The folder of the module's children, or that of the file if it has none: `hook.rs` belongs to
    /// `hook/`, as `hook/mod.rs` does.
    folder: PathBuf,
    text: String,
    /// Ranges of lines (from 1) of items that only a test build compiles.
    tests: Vec<RangeInclusive<usize>>,
    pub(crate) functions: Vec<Function>,
    imports: BTreeSet<ModulePath>,
    /// What the file only hands on (`pub use`): the exported name and its path.
    exports: BTreeMap<String, ModulePath>,
}

/// A function's name and its number of product lines.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: usize,
}

/// An import of one file by another, as indexes in [`Crate::files`].
type Import = (usize, usize);

impl Crate {
    /// Reads the crate in `crates/NAME`, beginning with its `lib.rs` or `main.rs`.
    pub(crate) fn read(root: &Path, name: &str) -> Result<Self> {
        let folder = root.join("crates").join(name).join("src");
        let entry = ["lib.rs", "main.rs"]
            .map(|file| folder.join(file))
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| format!("{}: neither lib.rs nor main.rs", folder.display()))?;
        let mut read = Self {
            files: Vec::new(),
            modules: BTreeMap::new(),
        };
        read.add(&entry, &folder, &[])?;
        Ok(read)
    }

    /// Adds a file and, from `children`, the folder of its child modules, those modules.
    fn add(&mut self, path: &Path, children: &Path, module: &[String]) -> Result {
        let text = fs::read_to_string(path).map_err(at(path))?;
        let parsed =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = Reader {
            module: module.to_vec(),
            ..Reader::default()
        };
        reader.visit_file(&parsed);
        let submodules = reader.submodules.clone();
        self.modules.insert(module.to_vec(), self.files.len());
        self.files.push(reader.into_file(path.to_path_buf(), text));
        for name in submodules {
            let inner = children.join(&name);
            let own = children.join(format!("{name}.rs"));
            let path = if own.exists() {
                own
            } else {
                inner.join("mod.rs")
            };
            let mut module = module.to_vec();
            module.push(name);
            self.add(&path, &inner, &module)?;
        }
        Ok(())
    }

    /// Returns the file in which a path's item is defined, following what modules hand on.
    fn defining(&self, path: &[String]) -> Option<usize> {
        let mut path = path.to_vec();
        // A chain of re-exports is short; the bound ends one that names itself.
        for _ in 0..8 {
            let depth = (0..=path.len())
                .rev()
                .find(|depth| self.modules.contains_key(&path[..*depth]))?;
            let file = self.modules[&path[..depth]];
            let Some(target) = path
                .get(depth)
                .and_then(|name| self.files[file].exports.get(name))
            else {
                return Some(file);
            };
            let rest = path[depth + 1..].to_vec();
            path = [target.clone(), rest].concat();
        }
        None
    }

    /// Returns which file imports which within the crate.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let mut found = BTreeSet::new();
        for (from, file) in self.files.iter().enumerate() {
            for path in &file.imports {
                if let Some(to) = self.defining(path).filter(|to| *to != from) {
                    found.insert((from, to));
                }
            }
        }
        found
    }

    /// Returns the groups of files that import each other in a circle and are of several folders.
    pub(crate) fn cycles(&self) -> Vec<Vec<&SourceFile>> {
        let imports = self.imports();
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len())
            .map(|start| reachable(start, &imports))
            .collect();
        let mut grouped: BTreeSet<usize> = BTreeSet::new();
        let mut cycles = Vec::new();
        for start in 0..self.files.len() {
            if grouped.contains(&start) {
                continue;
            }
            let group: Vec<usize> = reached[start]
                .iter()
                .copied()
                .filter(|other| reached[*other].contains(&start))
                .collect();
            grouped.extend(&group);
            let files: Vec<&SourceFile> = group.iter().map(|file| &self.files[*file]).collect();
            let folders: BTreeSet<&Path> = files.iter().map(|file| file.folder.as_path()).collect();
            if folders.len() > 1 {
                cycles.push(files);
            }
        }
        cycles
    }
}

/// Returns the files that `start` imports, directly or through others.
fn reachable(start: usize, imports: &BTreeSet<Import>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![start];
    while let Some(from) = pending.pop() {
        for (_, to) in imports.range((from, 0)..=(from, usize::MAX)) {
            if reached.insert(*to) {
                pending.push(*to);
            }
        }
    }
    reached
}

impl SourceFile {
    /// Returns the file's product lines, each with its number from 1.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        product_lines(&self.text, &self.tests)
    }
}

fn product_lines<'a>(
    text: &'a str,
    tests: &'a [RangeInclusive<usize>],
) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(number, line)| {
            let line = line.trim_start();
            !line.is_empty()
                && !line.starts_with("//")
                && !tests.iter().any(|range| range.contains(number))
        })
}

/// Collects what one file declares and names.
#[derive(Default)]
struct Reader {
    /// The module at the place of the visit; inline modules extend the file's own.
    module: ModulePath,
    submodules: Vec<String>,
    tests: Vec<RangeInclusive<usize>>,
    functions: Vec<(String, RangeInclusive<usize>)>,
    /// Paths that the code names, each with the module that names it.
    named: Vec<(ModulePath, Vec<String>)>,
    /// What a `use` brings in or, with `true`, hands on: the name and its path.
    used: Vec<(String, Vec<String>, bool)>,
}

impl Reader {
    fn into_file(self, path: PathBuf, text: String) -> SourceFile {
        let mut aliases = BTreeMap::new();
        let mut exports = BTreeMap::new();
        let mut imports = BTreeSet::new();
        for (name, path, is_public) in &self.used {
            let Some(path) = self.absolute(&self.module, path, &aliases) else {
                continue;
            };
            if *is_public {
                exports.insert(name.clone(), path);
            } else {
                imports.insert(path.clone());
                aliases.insert(name.clone(), path);
            }
        }
        for (module, path) in &self.named {
            imports.extend(self.absolute(module, path, &aliases));
        }
        let functions = self
            .functions
            .into_iter()
            .map(|(name, range)| Function {
                name,
                lines: product_lines(&text, &self.tests)
                    .filter(|(number, _)| range.contains(number))
                    .count(),
            })
            .collect();
        let parent = path.parent().unwrap_or(&path).to_path_buf();
        let is_named_mod = path.file_stem().is_some_and(|stem| stem == "mod");
        let folder = if self.module.is_empty() || is_named_mod || self.submodules.is_empty() {
            parent
        } else {
            path.with_extension("")
        };
        SourceFile {
            path,
            folder,
            tests: self.tests,
            functions,
            imports,
            exports,
            text,
        }
    }

    /// Makes a path absolute within the crate; a path of another crate has none.
    fn absolute(
        &self,
        module: &[String],
        path: &[String],
        aliases: &BTreeMap<String, ModulePath>,
    ) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let base = &module[..module.len().saturating_sub(ups)];
                Some([base, &path[ups..]].concat())
            }
            name if self.submodules.iter().any(|own| own == name) => Some([module, path].concat()),
            name => Some([aliases.get(name)?, rest].concat()),
        }
    }

    fn name(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.named.push((self.module.clone(), path));
        }
    }

    fn use_tree(&mut self, tree: &syn::UseTree, prefix: &[String], is_public: bool) {
        let (name, path) = match tree {
            syn::UseTree::Path(path) => {
                let prefix = [prefix, &[path.ident.to_string()]].concat();
                return self.use_tree(&path.tree, &prefix, is_public);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, prefix, is_public);
                }
                return;
            }
            syn::UseTree::Glob(_) => ("*".to_owned(), prefix.to_vec()),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (prefix.last().cloned().unwrap_or_default(), prefix.to_vec())
            }
            syn::UseTree::Name(name) => (
                name.ident.to_string(),
                [prefix, &[name.ident.to_string()]].concat(),
            ),
            syn::UseTree::Rename(rename) => (
                rename.rename.to_string(),
                [prefix, &[rename.ident.to_string()]].concat(),
            ),
        };
        self.used.push((name, path, is_public));
    }

    /// Names the paths in a macro's arguments, which are tokens only.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
            colons = 0;
        }
        self.name(path);
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let range = *lines_of(&signature.fn_token).start()..=*lines_of(block).end();
        self.functions.push((signature.ident.to_string(), range));
    }
}

/// Returns whether an item is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
    })
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn lines_of(spanned: &impl syn::spanned::Spanned) -> RangeInclusive<usize> {
    let span = spanned.span();
    span.start().line..=span.end().line
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(attributes_of(item)) {
            self.tests.push(lines_of(item));
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_none() {
            self.submodules.push(module.ident.to_string());
        } else {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        self.use_tree(&item.tree, &[], is_public);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_for_tests(&function.attrs) {
            self.tests.push(lines_of(function));
            return;
        }
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    // `pub(in super::super)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter();
            self.name(names.map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

#[cfg(test)]
mod tests;
