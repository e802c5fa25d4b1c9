//! Parser for the output of `rustc --emit=mir -Zmir-include-spans=on`: functions as graphs of basic blocks.

/// A part of a source file: line and column of its start and, exclusively, of its end. Both count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) file: String,
    pub(crate) start: (usize, usize),
    pub(crate) end: (usize, usize),
}

/// Control flow of a basic block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Location traced at the end of the block.
    pub(crate) point: Option<u16>,
    pub(crate) callee: Option<String>,
    /// Successors, without unwinding.
    pub(crate) successors: Vec<usize>,
    pub(crate) is_switch: bool,
    pub(crate) is_return: bool,
    pub(crate) span: Option<Span>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Name in the MIR.
    pub(crate) name: String,
    pub(crate) blocks: Vec<Block>,
}

/// Panics if the text is not valid output of the compiler.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let mut block: Option<usize> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("fn ") {
            // The name ends at the argument list. Names of closures contain `{closure#0}`, but no parentheses.
            let name = rest.split('(').next().unwrap_or_default().to_owned();
            functions.push(Function { name, blocks: Vec::new() });
            continue;
        }
        if line.starts_with("const ") || line.starts_with("static ") || line.starts_with("promoted[") {
            // Not a function, but its blocks have the same form.
            functions.push(Function { name: String::new(), blocks: Vec::new() });
            continue;
        }
        let code = line.trim_start();
        if let Some(number) = label(code) {
            let blocks = &mut functions.last_mut().expect("blocks stand in functions").blocks;
            blocks.resize_with(blocks.len().max(number + 1), Block::default);
            block = Some(number);
        } else if code == "}" {
            block = None;
        } else if let (Some(number), Some(function)) = (block, functions.last_mut()) {
            terminator(code, &mut function.blocks[number]);
        }
    }
    functions.retain(|function| !function.name.is_empty());
    functions
}

/// Parses the number in `bb12: {` or `bb12 (cleanup): {`.
fn label(code: &str) -> Option<usize> {
    let rest = code.strip_prefix("bb")?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    (rest[digits..].trim_start().starts_with("(cleanup): {") || rest[digits..].starts_with(": {"))
        .then(|| rest[..digits].parse().ok())?
}

/// Parses an instruction, if it is a terminator.
fn terminator(line: &str, block: &mut Block) {
    let (code, comment) = line.split_once("// ").unwrap_or((line, ""));
    let code = code.trim_end().trim_end_matches(';');
    if code == "return" {
        block.is_return = true;
    } else if let Some(target) = code.strip_prefix("goto -> ") {
        block.successors = vec![number(target)];
    } else if let Some((what, targets)) = code.split_once(" -> [") {
        let targets = targets.trim_end_matches(']').split(", ");
        block.is_switch = what.starts_with("switchInt(");
        for target in targets {
            let (way, target) = target.split_once(": ").unwrap_or(("", target));
            if !way.starts_with("unwind") && target.starts_with("bb") {
                block.successors.push(number(target));
            }
        }
        if !block.is_switch
            && let Some((callee, _)) = what.split_once(" = ").and_then(|(_, call)| call.split_once('('))
        {
            block.callee = Some(callee.to_owned());
            let id = callee.split_once("trace::point::<");
            let id = id.or_else(|| callee.split_once("LoopTrace::<").filter(|_| callee.ends_with("::tick")));
            block.point = id.map(|(_, id)| {
                let digits = id.split(|letter: char| !letter.is_ascii_digit()).next();
                digits.and_then(|digits| digits.parse().ok()).expect("a point has a number")
            });
        }
    } else {
        return;
    }
    block.span = span(comment);
}

fn number(target: &str) -> usize {
    let digits: String = target.trim_start_matches("bb").chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("`{target}` is no block"))
}

/// Parses the span in `scope 0 at src/a.rs:3:9: 3:20`.
fn span(comment: &str) -> Option<Span> {
    let (_, place) = comment.split_once(" at ")?;
    let (start, end) = place.trim_end().rsplit_once(": ")?;
    let mut parts = start.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let (end_line, end_column) = end.split_once(':')?;
    let parse = |text: &str| text.split(' ').next().and_then(|text| text.parse().ok());
    Some(Span {
        file: file.to_owned(),
        start: (parse(line)?, parse(column)?),
        end: (parse(end_line)?, parse(end_column)?),
    })
}

#[test]
fn instructions_that_end_blocks_are_understood() {
    let text = "fn a::automatic::k::{closure#0}(_1: &u32) -> () {
    let mut _0: ();

    bb0: {
        _2 = Lt(copy _3, copy _4); // scope 0 at src/a.rs:3:12: 3:20
        _5 = warptrace_device::trace::point::<17>() -> [return: bb1, unwind: bb3]; // scope 0 at src/a.rs:3:1: 3:2
    }

    bb1: {
        switchInt(move _2) -> [0: bb2, otherwise: bb0]; // scope 1 at src/a.rs:3:12: 4:20
    }

    bb2: {
        return; // scope 0 at src/a.rs:9:6: 9:6
    }

    bb3 (cleanup): {
        resume; // scope 0 at src/a.rs:9:6: 9:6
    }
}
";
    let found = functions(text);
    assert_eq!((found.len(), found[0].name.as_str()), (1, "a::automatic::k::{closure#0}"));
    let blocks = &found[0].blocks;
    assert_eq!((blocks[0].point, &blocks[0].successors[..]), (Some(17), &[1][..]));
    assert_eq!((blocks[1].is_switch, &blocks[1].successors[..]), (true, &[2, 0][..]));
    let condition = Span { file: "src/a.rs".to_owned(), start: (3, 12), end: (4, 20) };
    assert_eq!(blocks[1].span.as_ref(), Some(&condition));
    assert!(blocks[2].is_return && blocks[3].successors.is_empty());
}
