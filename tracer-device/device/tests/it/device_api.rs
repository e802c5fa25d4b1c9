//! Checks that `docs/reference/device-api.md` lists exactly the items that a kernel can use.
//!
//! The test reads the sources line by line, as formatted by rustfmt. It finds public functions, types, traits
//! and constants of public modules and of modules named in `pub use`, methods of `impl` blocks, functions
//! from the rows of a `macro_rules!` table, exported macros, and the attributes with their arguments. It
//! excludes items with `#[doc(hidden)]` and host-only items. It compares whether functions are `unsafe`, but
//! not their signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Paths in `warptrace::device`, and whether a call is `unsafe`.
type Items = BTreeMap<String, bool>;

const HOST_ONLY: &str = "#[cfg(not(target_arch = \"nvptx64\"))]";

#[test]
fn the_page_has_every_item_of_the_device_api_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut source = scan(&root.join("tracer-device/device/src/lib.rs"));
    source.extend(attributes(&root));
    let shown = |items: Items| -> BTreeSet<String> {
        let show = |(name, is_unsafe)| if is_unsafe { format!("unsafe {name}") } else { name };
        items.into_iter().map(show).collect()
    };
    let (source, page) = (shown(source), shown(page(&root.join("docs/reference/device-api.md"))));
    let missing: Vec<_> = source.difference(&page).collect();
    let gone: Vec<_> = page.difference(&source).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/reference/device-api.md: write a row for {missing:#?}, and take out the rows of {gone:#?}"
    );
}

/// Reads the items of the page: the code in the first cell of each table row.
fn page(path: &Path) -> Items {
    let text = read(path);
    let lines: Vec<&str> = text.lines().collect();
    let mut items = Items::new();
    for (at, line) in lines.iter().enumerate() {
        let is_head = lines.get(at + 1).is_some_and(|next| next.starts_with("| ---"));
        if !line.starts_with('|') || line.starts_with("| ---") || is_head {
            continue;
        }
        let cell = line.split(" | ").next().unwrap_or_default();
        let codes: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!codes.is_empty(), "line {}: a row begins with the name of an item", at + 1);
        for code in codes {
            let (code, is_unsafe) = match code.strip_prefix("unsafe ") {
                Some(rest) => (rest, true),
                None => (code, false),
            };
            let name = if code.starts_with("#[") {
                let end = code.find(" =").unwrap_or(code.len());
                code[..end].replace("warptrace::", "").replace([')', ']'], "")
            } else {
                let end = code.find(|c: char| !(c.is_alphanumeric() || "_:!".contains(c)));
                code[..end.unwrap_or(code.len())].trim_end_matches(':').to_owned()
            };
            assert!(items.insert(name, is_unsafe).is_none(), "line {}: `{code}` has two rows", at + 1);
        }
    }
    items
}

fn attributes(root: &Path) -> Items {
    let macros = root.join("tracer-device/macros/src");
    let mut found = BTreeSet::from(["#[untraced".to_owned()]);
    assert!(read(&macros.join("functions.rs")).contains("has(self.attributes, \"untraced\")"));
    for line in read(&root.join("tracer-host/warptrace/src/lib.rs")).lines() {
        if let Some(names) = line.strip_prefix("pub use warptrace_macros::") {
            found.extend(words(names).map(|name| format!("#[{name}")));
        }
    }
    let arguments = read(&macros.join("arguments.rs"));
    let (_, fields) = arguments.split_once("struct Arguments {").expect("arguments of the attribute");
    for line in fields.lines().take_while(|line| *line != "}") {
        match line.trim().strip_prefix("pub(crate) ").and_then(|field| words(field).next()) {
            // Derived from `device`.
            None | Some("is_users") => {}
            Some(name) => _ = found.insert(format!("#[kernels({name}")),
        }
    }
    found.into_iter().map(|name| (name, false)).collect()
}

/// A region in braces: a module, an `impl` block or a macro.
struct Block {
    indent: usize,
    /// Path segment of its items; none for a macro.
    name: Option<String>,
    /// Whether its items are inaccessible from outside.
    is_hidden: bool,
    /// The macro that it defines.
    defines: Option<String>,
}

/// A macro that generates functions from table rows.
#[derive(Default)]
struct SharedTable {
    /// Variables of a row, in order, one word each.
    variables: Vec<String>,
    /// Variables that name functions, and whether these are `unsafe`.
    functions: Vec<(String, bool)>,
}

fn scan(file: &Path) -> Items {
    let text = read(file);
    let mut lines = text.lines();
    let (mut items, mut private, mut tables) = (Items::new(), BTreeMap::new(), BTreeMap::new());
    let (mut uses, mut aliases) = (Vec::new(), BTreeMap::new());
    let mut blocks: Vec<Block> = Vec::new();
    let mut attributes = String::new();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        if code.starts_with("#[") {
            attributes += code;
            while !attributes.ends_with(']') {
                attributes += lines.next().expect("the end of an attribute").trim();
            }
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        let is_hidden = attributes.contains("#[doc(hidden)]") || attributes.contains(HOST_ONLY);
        if code.starts_with('}') && blocks.last().is_some_and(|block| block.indent == indent) {
            blocks.pop();
            continue;
        }
        let is_closed = blocks.iter().any(|block| block.is_hidden);
        let path = |name: &str| {
            let outer = blocks.iter().filter_map(|block| block.name.as_deref());
            outer.chain([name]).collect::<Vec<_>>().join("::")
        };
        let open = |name: Option<&str>, is_hidden| {
            Some(Block { indent, name: name.map(str::to_owned), is_hidden, defines: None })
        };
        let mut opened = None;

        let plain = code.strip_prefix("pub(crate) ").unwrap_or(code);
        if let Some(name) = plain.strip_prefix("pub ").unwrap_or(plain).strip_prefix("mod ") {
            let is_public = code.starts_with("pub ") && !is_hidden;
            if let Some(name) = name.strip_suffix(" {") {
                opened = open(Some(name), !is_public);
            } else if let Some(name) = name.strip_suffix(';').filter(|_| !is_hidden) {
                for (item, is_unsafe) in scan(&submodule(file, name)) {
                    if item.ends_with('!') {
                        items.insert(item, false);
                    } else if is_public {
                        items.insert(format!("{name}::{item}"), is_unsafe);
                    } else {
                        private.entry(name.to_owned()).or_insert_with(Items::new).insert(item, is_unsafe);
                    }
                }
            }
        } else if let Some(path) = code.strip_prefix("pub use ").or(code.strip_prefix("use ")) {
            let mut path = path.to_owned();
            while !path.ends_with(';') {
                path += lines.next().expect("the end of a use").trim();
            }
            match path.trim_end_matches(';').split_once(" as ") {
                _ if is_hidden || !blocks.is_empty() => {}
                Some((module, alias)) => _ = aliases.insert(alias.to_owned(), module.to_owned()),
                None if code.starts_with("pub ") => uses.push(path),
                None => {}
            }
        } else if let Some(name) = code.strip_prefix("macro_rules! ").and_then(|rest| rest.strip_suffix(" {"))
        {
            let is_exported = attributes.contains("#[macro_export]");
            if is_exported && !is_hidden {
                items.insert(format!("{name}!"), false);
            } else {
                tables.insert(name.to_owned(), SharedTable::default());
            }
            opened = open(None, is_exported);
            opened.iter_mut().for_each(|block| block.defines = Some(name.to_owned()));
        } else if code.starts_with("impl") && code.ends_with('{') {
            opened = open(Some(type_of_impl(code)), code.contains(" for "));
        } else if let Some((name, _)) = code.split_once("! {")
            && let Some(table) = tables.get(name)
            && !is_closed
        {
            let mut row = String::new();
            for line in lines.by_ref().take_while(|line| line.trim_end() != format!("{:indent$}}}", "")) {
                if !line.trim_start().starts_with("//") {
                    row += line;
                }
                if row.ends_with(';') {
                    for (variable, is_unsafe) in &table.functions {
                        let at = table.variables.iter().position(|other| other == variable);
                        let name = words(&row).nth(at.expect("a variable of the row"));
                        items.insert(path(name.expect("a word for the variable")), *is_unsafe);
                    }
                    row.clear();
                }
            }
            assert_eq!(row, "", "{}: a row of {name}! without an end", file.display());
        } else if let Some((name, is_unsafe)) = item(code).filter(|_| !is_closed && !is_hidden) {
            let table = blocks.iter().find_map(|block| block.defines.as_ref());
            match (name.strip_prefix('$'), table.and_then(|name| tables.get_mut(name))) {
                (Some(variable), Some(table)) => table.functions.push((variable.to_owned(), is_unsafe)),
                _ => _ = items.insert(path(name), is_unsafe),
            }
        } else if let Some(Block { defines: Some(name), .. }) = blocks.last()
            && let Some((pattern, _)) = code.split_once(" => ")
            && let Some(table) = tables.get_mut(name).filter(|table| table.variables.is_empty())
        {
            let (_, row) = pattern.split_once("$(").expect("a table with rows");
            let variables = row.split('$').filter(|part| !part.starts_with("doc"));
            let variables = variables.filter_map(|part| part.split_once(':')).map(|(name, _)| name);
            table.variables = variables.filter(|name| words(name).eq([*name])).map(str::to_owned).collect();
        }
        blocks.extend(opened);
    }
    for path in uses {
        let (module, names) = path.split_once("::").expect("a path");
        let module = aliases.get(module).map_or(module, String::as_str);
        for name in words(names) {
            let Some(module) = private.get(module) else {
                items.insert(name.to_owned(), false);
                continue;
            };
            let is_of = |item: &str| item == name || item.starts_with(&format!("{name}::"));
            let found: Vec<_> = module.iter().filter(|(item, _)| is_of(item)).collect();
            assert!(!found.is_empty(), "{}: `{name}` was not found", file.display());
            items.extend(found.into_iter().map(|(item, is_unsafe)| (item.clone(), *is_unsafe)));
        }
    }
    items
}

fn item(code: &str) -> Option<(&str, bool)> {
    let mut rest = code.strip_prefix("pub ")?;
    let mut is_unsafe = false;
    loop {
        let (word, behind) = rest.split_once(' ')?;
        let is_modifier = behind.starts_with("fn ") || behind.starts_with("unsafe fn ");
        rest = behind;
        match word {
            "unsafe" => is_unsafe = true,
            "const" if is_modifier => {}
            "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => break,
            _ => return None,
        }
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$".contains(c))).unwrap_or(rest.len());
    Some((&rest[..end], is_unsafe))
}

fn type_of_impl(code: &str) -> &str {
    let mut depth = 0;
    let generics = code["impl".len()..].find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0 && c != '>'
    });
    words(&code["impl".len() + generics.unwrap_or(0)..]).next().expect("a type")
}

fn submodule(file: &Path, name: &str) -> PathBuf {
    let folder = file.parent().expect("a folder");
    let alone = folder.join(name).with_extension("rs");
    if alone.exists() { alone } else { folder.join(name).join("mod.rs") }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
