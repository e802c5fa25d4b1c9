//! Links several PTX texts into one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::lexer::{Lexer, TokenKind};
use crate::{FunctionKind, Item, ItemKind, Linkage, Module, ParseError, Position, Span};

/// The only section that is kept. It has the names of inlined functions, to which `.loc` refers.
const KEPT_SECTION: &str = ".debug_str";

/// Reasons why parts cannot be linked. Parts and lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No parts were passed.
    #[error("there is no PTX to link")]
    Empty,
    /// A part is not valid PTX. Fields: the part's number and the parse error.
    #[error("part {0} of the program: {1}")]
    Parse(usize, ParseError),
    /// A part does not use 64-bit addresses. Fields: the part's number and its address size in bits.
    #[error("part {0} of the program has addresses of {1} bits: only those of 64 can be linked")]
    AddressSize(usize, u32),
    /// No architecture runs all parts. Fields: the architecture of the parts so far, the number of the next
    /// part, and its architecture.
    #[error("the program has code for `{0}`, and its part {1} for `{2}`: no architecture runs both")]
    Targets(String, usize, String),
    /// Two parts define the same name. Fields: the name, then the part and line of each definition.
    #[error("`{0}` is defined in part {1} of the program, line {2}, and in part {3}, line {4}")]
    Twice(String, usize, usize, usize, usize),
    /// A declaration of module scope declares several names. Fields: its part and line.
    #[error("part {0} of the program, line {1}: a variable that is linked needs a declaration of its own")]
    Several(usize, usize),
}

/// Several parts, linked into one PTX text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The linked text, a complete module.
    pub text: String,
    /// Maps lines of parts to lines of the linked text. Sorted by part and first line.
    lines: Vec<Lines>,
}

/// A run of lines that are consecutive both in a part and in the linked text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    part: usize,
    first: usize,
    count: usize,
    linked: usize,
}

impl Linked {
    /// Returns the line of the linked text for a line (from 1) of a part (from 0). `None` for a replaced
    /// definition, a declaration of a name that some part defines, and lines between functions.
    #[must_use]
    pub fn line(&self, part: usize, line: usize) -> Option<usize> {
        let behind = self.lines.partition_point(|lines| (lines.part, lines.first) <= (part, line));
        let lines = self.lines[..behind].last().filter(|lines| lines.part == part)?;
        (line < lines.first + lines.count).then(|| lines.linked + line - lines.first)
    }
}

/// Links PTX texts as a device linker does, for example the parts that `nvcc -rdc=true` makes. Functions of
/// one part can then call functions of another.
///
/// - The linked text has the highest version and architecture of all parts.
/// - Prototypes come first, then variables, then functions. Each item keeps its line structure.
/// - If several parts define a name, a strong definition replaces `.weak` and `.common` ones. Without a
///   strong definition, the first one is kept.
/// - A name that no part defines stays declared, once. Dynamic shared memory gets the greatest alignment.
/// - A name without linkage is local to its part. If the name is already taken, it is renamed: `name` of the
///   second part becomes `name$2`. Names of kernels never change.
/// - Files get new numbers. Of the debug sections only `.debug_str` is kept, which has the names of inlined
///   functions. The word `debug` of `.target` is removed with the other sections.
///
/// # Errors
/// Returns a [`LinkError`] if a part cannot be parsed or the parts do not fit together.
pub fn link(texts: &[&str]) -> Result<Linked, LinkError> {
    let read = texts.iter().enumerate().map(|(index, text)| Part::read(index + 1, text));
    let mut parts = read.collect::<Result<Vec<_>, _>>()?;
    let (major, minor) = parts.iter().map(|part| part.module.version()).max().ok_or(LinkError::Empty)?;
    let text = format!(".version {major}.{minor}\n.target {}\n.address_size 64\n", target(&parts)?);
    rename(&mut parts);
    let owners = owners(&parts)?;
    let (lines, files) = (Vec::new(), HashMap::new());
    let mut writer = Writer { parts: &parts, owners, text, line: 4, lines, files };
    writer.prototypes();
    writer.undefined();
    writer.variables();
    for (index, part) in parts.iter().enumerate() {
        for Item { span, kind } in &part.module.items {
            let stays = match kind {
                ItemKind::Function(function) => {
                    let function = &part.module.functions[*function];
                    function.body.is_some() && writer.keeps(index, function.name)
                }
                ItemKind::Section { name } => *name == KEPT_SECTION,
                kind => matches!(
                    kind,
                    ItemKind::File { .. } | ItemKind::Comment | ItemKind::Pragma | ItemKind::Other { .. }
                ),
            };
            if stays {
                writer.copy(index, *span);
            }
        }
    }
    writer.lines.sort_unstable_by_key(|lines| (lines.part, lines.first));
    Ok(Linked { text: writer.text, lines: writer.lines })
}

/// How a part declares or defines a name. Later variants take precedence over earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Has {
    Declaration,
    /// A definition that is not visible in other parts.
    Local,
    /// A definition that another part's definition may replace.
    Weak,
    Strong,
}

struct Part<'a> {
    module: Module<'a>,
    /// Names of module scope: the strongest declaration of each, and its offset.
    symbols: BTreeMap<&'a str, (Has, usize)>,
    /// New names of renamed local symbols, by old name.
    renamed: HashMap<&'a str, String>,
    line_ends: Vec<usize>,
}

impl<'a> Part<'a> {
    /// Parses a part. `number` counts from 1 and is used in errors only.
    fn read(number: usize, text: &'a str) -> Result<Self, LinkError> {
        let module = Module::parse(text).map_err(|error| LinkError::Parse(number, error))?;
        if let Some(bits) = module.address_size().filter(|bits| *bits != 64) {
            return Err(LinkError::AddressSize(number, bits));
        }
        let mut symbols = BTreeMap::new();
        for Item { span, kind } in &module.items {
            let mut note = |name, linkage, is_defined: bool| {
                let has = match linkage {
                    Linkage::Extern => Has::Declaration,
                    _ if !is_defined => Has::Declaration,
                    Linkage::None => Has::Local,
                    Linkage::Weak | Linkage::Common => Has::Weak,
                    Linkage::Visible => Has::Strong,
                };
                let known = symbols.entry(name).or_insert((has, span.start));
                *known = (*known).max((has, span.start));
            };
            match kind {
                ItemKind::Function(index) => {
                    let function = &module.functions[*index];
                    let linkage = match (function.kind, function.linkage) {
                        // The host can look up any kernel by name, so its name is visible without linkage.
                        (FunctionKind::Entry, Linkage::None) => Linkage::Visible,
                        (_, linkage) => linkage,
                    };
                    note(function.name, linkage, function.body.is_some());
                }
                ItemKind::Variable(it) if it.names.len() > 1 => {
                    return Err(LinkError::Several(number, Position::new(text, span.start).line));
                }
                ItemKind::Variable(it) => note(it.names[0].name, it.linkage, true),
                ItemKind::Alias { name, .. } => {
                    note(name, module.function(name).map_or(Linkage::None, |it| it.linkage), true);
                }
                ItemKind::Section { name: KEPT_SECTION } => {
                    words(span.text(text)).for_each(|label| note(label, Linkage::None, true));
                }
                _ => {}
            }
        }
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        Ok(Self { module, symbols, renamed: HashMap::new(), line_ends })
    }

    /// Returns the line at an offset, counted from 1.
    fn line(&self, offset: usize) -> usize {
        1 + self.line_ends.partition_point(|end| *end < offset)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(move || Some(lexer.next()).filter(|token| token.kind != TokenKind::End));
    tokens.filter(|token| token.kind == TokenKind::Word).map(|token| token.span.text(text))
}

/// Returns the operands of `.target`: the highest architecture of all parts, and the options of all parts.
fn target(parts: &[Part<'_>]) -> Result<String, LinkError> {
    // A letter after the number marks an architecture whose code runs on no other one.
    let key = |name: &str| {
        let number = name.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
        (number.parse::<u32>().unwrap_or_default(), name.ends_with(char::is_alphabetic))
    };
    let (mut all, mut options) = ("", BTreeSet::new());
    for (index, part) in parts.iter().enumerate() {
        let next = part.module.target();
        let (low, high) = if key(all) <= key(next) { (all, next) } else { (next, all) };
        if low != high && key(low).1 {
            return Err(LinkError::Targets(all.to_owned(), index + 1, next.to_owned()));
        }
        all = high;
        options.extend(part.module.targets().iter().skip(1).filter(|option| **option != "debug"));
    }
    Ok(options.into_iter().fold(all.to_owned(), |all, option| all + ", " + option))
}

/// Chooses new names for local symbols whose names are taken.
fn rename(parts: &mut [Part<'_>]) {
    let all = parts.iter().flat_map(|part| &part.symbols);
    let shared = all.filter(|(_, (has, _))| *has != Has::Local).map(|(name, _)| (*name).to_owned());
    let mut taken: HashSet<String> = shared.collect();
    for (index, part) in parts.iter_mut().enumerate() {
        for (name, _) in part.symbols.iter().filter(|(_, (has, _))| *has == Has::Local) {
            let mut new = (*name).to_owned();
            if taken.contains(*name) {
                new += &format!("${}", index + 1);
                while taken.contains(&new) || part.module.text.contains(&new) {
                    new.push('$');
                }
                part.renamed.insert(name, new.clone());
            }
            taken.insert(new);
        }
    }
}

/// The kept definition of each name that is visible in all parts: part index, kind and offset.
type Owners<'a> = HashMap<&'a str, (usize, Has, usize)>;

fn owners<'a>(parts: &[Part<'a>]) -> Result<Owners<'a>, LinkError> {
    let mut owners = Owners::new();
    for (index, part) in parts.iter().enumerate() {
        for (&name, &(has, at)) in part.symbols.iter().filter(|(_, (has, _))| *has >= Has::Weak) {
            let owner = owners.entry(name).or_insert((index, has, at));
            if owner.0 != index && owner.1 == Has::Strong && has == Has::Strong {
                let (first, line) = (owner.0 + 1, parts[owner.0].line(owner.2));
                return Err(LinkError::Twice(name.to_owned(), first, line, index + 1, part.line(at)));
            }
            if owner.1 < has {
                *owner = (index, has, at);
            }
        }
    }
    Ok(owners)
}

struct Writer<'a> {
    parts: &'a [Part<'a>],
    owners: Owners<'a>,
    text: String,
    line: usize,
    lines: Vec<Lines>,
    /// New numbers of files, by part and old number.
    files: HashMap<(usize, &'a str), usize>,
}

impl<'a> Writer<'a> {
    fn keeps(&self, part: usize, name: &str) -> bool {
        let is_owner = self.owners.get(name).is_some_and(|(owner, ..)| *owner == part);
        is_owner || self.parts[part].symbols[name].0 == Has::Local
    }

    /// Returns the text of a span with renamed symbols and renumbered files.
    fn edited(&mut self, part: usize, span: Span) -> String {
        let Part { module, renamed, .. } = &self.parts[part];
        let text = span.text(module.text);
        let mut lexer = Lexer::new(text);
        let (mut out, mut copied, mut before) = (String::with_capacity(text.len()), 0, "");
        loop {
            let token = lexer.next();
            let word = token.span.text(text);
            let new = match token.kind {
                TokenKind::End => return out + &text[copied..],
                TokenKind::Comment => continue,
                TokenKind::Word => renamed.get(word).cloned(),
                TokenKind::Number if matches!(before, ".file" | ".loc" | "inlined_at") => {
                    let next = self.files.len() + 1;
                    Some(self.files.entry((part, word)).or_insert(next).to_string())
                }
                _ => None,
            };
            before = word;
            if let Some(new) = new {
                out += &text[copied..token.span.start];
                out += &new;
                copied = token.span.end;
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
        self.line += 1 + memchr::memchr_iter(b'\n', text.as_bytes()).count();
    }

    fn copy(&mut self, part: usize, span: Span) {
        let (text, linked) = (self.edited(part, span), self.line);
        self.push(&text);
        let first = self.parts[part].line(span.start);
        self.lines.push(Lines { part, first, count: self.line - linked, linked });
    }

    /// Appends a prototype for every kept function, and for every kept kernel that a part declares.
    fn prototypes(&mut self) {
        let functions = self.parts.iter().flat_map(|part| &part.module.functions);
        let declared = functions.filter(|function| function.body.is_none()).map(|function| function.name);
        let declared: HashSet<&str> = declared.collect();
        for (index, part) in self.parts.iter().enumerate() {
            for function in part.module.definitions() {
                let is_kernel = function.kind == FunctionKind::Entry;
                if !self.keeps(index, function.name) || is_kernel && !declared.contains(function.name) {
                    continue;
                }
                let end = function.param_list.map_or(function.name_span.end, |list| list.end);
                let mut text = self.edited(index, Span::new(function.span.start, end));
                // The assembler accepts no directives on a kernel's prototype. On other prototypes they must
                // match the definition.
                for directive in function.directives.iter().filter(|it| !is_kernel && it.name != ".pragma") {
                    text = text + " " + directive.span.text(part.module.text);
                }
                self.push(&(text + ";"));
            }
        }
    }

    /// Appends declarations of names that no part defines, and kept aliases with their prototypes.
    fn undefined(&mut self) {
        let mut undefined: BTreeMap<&str, (Option<u32>, usize, Span)> = BTreeMap::new();
        for (index, part) in self.parts.iter().enumerate() {
            for Item { span, kind } in &part.module.items {
                let (name, align) = match kind {
                    ItemKind::Function(function) => (part.module.functions[*function].name, None),
                    ItemKind::Variable(it) => (it.names[0].name, it.align),
                    ItemKind::Alias { name, .. } if self.keeps(index, name) => {
                        let prototype = part.module.function(name).map(|function| function.span);
                        prototype.into_iter().chain([*span]).for_each(|span| self.copy(index, span));
                        continue;
                    }
                    _ => continue,
                };
                let is_defined = part.symbols[name].0 == Has::Local || self.owners.contains_key(name);
                if !is_defined && undefined.get(name).is_none_or(|(known, ..)| *known < align) {
                    undefined.insert(name, (align, index, *span));
                }
            }
        }
        undefined.into_values().for_each(|(_, part, span)| self.copy(part, span));
    }

    /// Appends the kept variables, each after the variables that its initializer names.
    fn variables(&mut self) {
        let mut variables = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            for (span, it) in part.module.variables().filter(|(_, it)| it.linkage != Linkage::Extern) {
                if self.keeps(index, it.names[0].name) {
                    let text = self.edited(index, span);
                    let mut words = words(&text).map(str::to_owned);
                    let name = words.next().unwrap_or_default();
                    variables.push((index, span, words.collect::<HashSet<_>>(), name));
                }
            }
        }
        while !variables.is_empty() {
            let left: HashSet<String> = variables.iter().map(|(.., name)| name.clone()).collect();
            let waits = |(.., words, name): &(_, _, HashSet<String>, String)| {
                words.iter().any(|word| word != name && left.contains(word))
            };
            let (later, now): (Vec<_>, _) = variables.into_iter().partition(waits);
            // Variables whose initializers name each other keep their order.
            let (later, now) = if now.is_empty() { (now, later) } else { (later, now) };
            now.iter().for_each(|(part, span, ..)| self.copy(*part, *span));
            variables = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use warptrace_build::Ptxas;

    use super::*;

    /// PTX that `nvcc -O3 -lineinfo -arch=sm_90 -rdc=true` stores in `.nv_debug_ptx_txt.*`, with line ends
    /// for zero bytes: two files of one program, and one with a kernel that launches kernels.
    const RUN: &str = include_str!("../tests/data/linked/run.ptx");
    const SHAPES: &str = include_str!("../tests/data/linked/shapes.ptx");
    const CHILD: &str = include_str!("../tests/data/linked/child.ptx");

    const USER: &str = r#"
.extern .func (.param .b32 r) other(.param .b32 a);
.extern .global .align 8 .u64 table[2];
.extern .shared .align 4 .b8 block[];
.global .align 8 .u64 first = table;
.global .align 1 .b8 $str[3] = {72, 105};
.weak .func both() .noreturn { trap; }
.func helper() { .loc 1 7 1
ret; }
.visible .entry k(.param .b64 out) .maxntid 64 {
.reg .b32 %r<3>;
.reg .b64 %rd<3>;
{ .param .b32 a; .param .b32 r;
st.param.b32 [a], 1;
call (r), other, (a);
}
call helper;
.loc 1 9 1
mov.u64 %rd1, $str;
st.global.b64 [first], %rd1;
mov.u32 %r1, block;
ret;
}
.file 1 "user.cu"
"#;
    const OTHER: &str = r#"
.file 1 "other.cu"
.file 2 "user.cu"
.extern .shared .align 16 .b8 block[];
.global .align 1 .b8 $str[3] = {79, 107}; // $str
.weak .func both() .noreturn { trap; }
.func helper() { ret; }
.visible .func (.param .b32 r) other(.param .b32 a) {
.reg .b32 %r<3>;
.reg .b64 %rd<3>;
.loc 1 5 1
mov.u64 %rd1, $str;
.loc 2 7 1
.loc 1 6 2, function_name $names+3, inlined_at 2 7 1
mov.u32 %r2, block;
call helper;
st.param.b32 [r], %r2;
ret;
}
.visible .global .align 8 .u64 table[2] = {$str, k};
.extern .entry k(.param .b64 out);
.section .debug_str { $names:
.b8 95,90,0,102,0
}
.section .debug_abbrev { .b8 0 }
"#;

    fn with_header(target: &str, rest: &str) -> String {
        format!(".version 8.0\n.target {target}\n.address_size 64\n{rest}")
    }

    fn says(text: &str, all: &[&str]) {
        all.iter().for_each(|words| assert!(text.contains(words), "{words}:\n{text}"));
    }

    /// Links texts, checks the line mapping of `st.` lines, and assembles the result if possible.
    fn check(texts: &[&str]) -> Linked {
        let linked = link(texts).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = linked.text.lines().collect();
        for (part, text) in texts.iter().enumerate() {
            for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("st.")) {
                let there = linked.line(part, index + 1).map(|line| lines[line - 1]);
                assert_eq!(there, Some(line), "part {part}, line {}", index + 1);
            }
        }
        assert!(crate::fuzzing::check(&linked.text));
        let folder = tempfile::tempdir().expect("a folder for the assembler");
        let path = folder.path().join("linked.ptx");
        std::fs::write(&path, &linked.text).expect("the folder takes files");
        match Ptxas::find(concat!(env!("CARGO_MANIFEST_DIR"), "/../..").as_ref()) {
            Err(error) => eprintln!("skipped: {error}"),
            Ok(ptxas) => {
                let said =
                    ptxas.assemble(&path, "sm_90").unwrap_or_else(|it| panic!("{it}\n{}", linked.text));
                assert!(!said.contains("warning"), "{said}");
            }
        }
        linked
    }

    #[test]
    fn functions_of_another_file_are_called_through_pointers() {
        for texts in [[RUN, SHAPES], [SHAPES, RUN]] {
            let linked = check(&texts);
            assert!(!linked.text.contains(".extern"));
            let module = Module::parse(&linked.text).expect("it is PTX");
            assert_eq!((module.definitions().count(), module.functions.len()), (6, 11));
        }
    }

    #[test]
    fn what_no_part_defines_stays_declared_once() {
        let linked = link(&[CHILD, &CHILD.replace("_Z", "_Y")]).expect("they fit").text;
        assert_eq!(linked.matches(".extern").count(), 2);
        let functions = ["GetParameterBufferV2", "LaunchDeviceV2"].map(|name| {
            let at = CHILD.find(&format!(") __cudaCDP2{name}")).expect("it is declared");
            let list = &CHILD[at..][..CHILD[at..].find(';').expect("it ends")];
            format!(".visible .func (.param .b64 r{list} {{ trap; }}\n")
        });
        let functions = functions.concat().replace("b64 r) __cudaCDP2L", "b32 r) __cudaCDP2L");
        check(&[CHILD, &with_header("sm_90", &functions)]);
    }

    #[test]
    fn names_and_files_of_parts_are_kept_apart() {
        let (user, other) = (with_header("sm_80", USER), with_header("sm_90, debug", OTHER));
        let linked = check(&[&user, &other]);
        let text = &linked.text;
        assert!(text.starts_with(".version 8.0\n.target sm_90\n.address_size 64\n"));
        says(text, &[".loc 1 7 1", ".file 1 \"user", ".file 2 \"other", ".file 3 \"user", ".loc 2 5 1"]);
        says(text, &["+3, inlined_at 3 7 1", "$str$2[3] = {79, 107};", "table[2] = {$str$2, k};"]);
        says(text, &["call helper;", "call helper$2;", "mov.u64 %rd1, $str;", "mov.u64 %rd1, $str$2;"]);
        assert_eq!(text.matches("both() .noreturn {").count(), 1);
        let declared: Vec<&str> = text.lines().filter(|line| line.starts_with(".extern")).collect();
        assert_eq!(declared, [".extern .shared .align 16 .b8 block[];"]);
        let line = |part: &str| 1 + part.lines().position(|line| line.contains("n {")).expect("it is there");
        assert_eq!(linked.line(0, line(&user)), Some(line(text)));
        let none = [(1, line(&other)), (2, 1), (0, 0), (0, 999)];
        assert!(none.iter().all(|(part, line)| linked.line(*part, *line).is_none()));
        // A strong function keeps its name, whatever the order of the parts.
        let strong = ".visible .func both() .noreturn { exit; }\n.visible .func helper() { ret; }";
        let text = check(&[&user, &with_header("sm_90", strong), &other]).text;
        says(&text, &["helper$1() {", "helper() {", "helper$3() {", "noreturn { exit; }"]);
        assert!(!text.contains("noreturn { trap; }"));
    }

    #[test]
    fn aliases_stay_with_their_functions() {
        let part = |of| format!(".func f() {{ ret; }}\n.visible .func {of}();\n.alias {of}, f;");
        let [g, h] = ["g", "h"].map(|of| with_header("sm_90", &part(of)));
        says(&check(&[&g, &h]).text, &[".alias g, f;", ".alias h, f$2;"]);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let [a, b, c] = ["sm_90a", "sm_80", "sm_100"].map(|target| with_header(target, ""));
        says(&link(&[&b, &a]).expect("they fit").text, &[".target sm_90a\n"]);
        says(&link(&[&c, &b]).expect("they fit").text, &[".target sm_100\n"]);
        let several = b.clone() + ".shared .b32 a, b;";
        let cases: [(&[&str], &str); 6] = [
            (&[], "there is no PTX"),
            (&[RUN, "x"], "part 2 of the program: PTX line 1, column 1: found `x`"),
            (
                &[SHAPES, RUN, SHAPES],
                "`_Z10plus_seveni` is defined in part 1 of the program, line 31, and in",
            ),
            (&[&a, &b, &c], "the program has code for `sm_90a`, and its part 3 for `sm_100`:"),
            (&[&b, &a.replace("64", "32")], "part 2 of the program has addresses of 32 bits"),
            (&[&several], "part 1 of the program, line 4: a variable"),
        ];
        for (texts, expected) in cases {
            let error = link(texts).expect_err("they do not fit").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
