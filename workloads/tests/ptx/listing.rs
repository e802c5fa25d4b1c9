//! Reading PTX text.

use std::collections::{BTreeMap, BTreeSet};

/// The kernels of a module: name and body.
pub(crate) fn entries(ptx: &str) -> BTreeMap<&str, &str> {
    let mut entries = BTreeMap::new();
    for part in ptx.split(".visible .entry ").skip(1) {
        let (name, rest) = part.split_once('(').expect("an entry has parameters");
        entries.insert(name, body(rest));
    }
    entries
}

/// The functions of a module that can be called by their names, and answer something: name and body.
pub(crate) fn functions(ptx: &str) -> BTreeMap<&str, &str> {
    let mut functions = BTreeMap::new();
    for part in ptx.split(".visible .func ").skip(1) {
        let Some((_, rest)) = part.split_once(") ") else { continue };
        let Some((name, rest)) = rest.split_once('(') else { continue };
        // A declaration ends before a body could begin.
        if rest.find('{').is_some_and(|begin| !rest[..begin].contains(';')) {
            functions.insert(name, body(rest));
        }
    }
    functions
}

/// What is between the first brace and the one that belongs to it.
fn body(rest: &str) -> &str {
    // Inline assembly brings blocks of its own, so braces are counted.
    let mut depth = 0;
    let mut body = rest.char_indices().skip_while(|(_, c)| *c != '{');
    let end = body.find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0
    });
    let (end, _) = end.expect("a body ends");
    &rest[..end]
}

/// The locations that a kernel's body hands to this function of the tracer: the constants in the second argument of its calls.
///
/// # Panics
/// If a location is no constant: then two trace points have become one.
pub(crate) fn locations_for(function: &str, body: &str) -> Vec<u16> {
    // It is called through its address.
    let mut addresses = BTreeSet::new();
    let (mut location, mut locations) = (None, Vec::new());
    for line in body.lines().map(str::trim) {
        let moved = line.strip_prefix("mov.u64 ").and_then(|rest| rest.strip_suffix(';')?.split_once(", "));
        if let Some((register, name)) = moved {
            if name == function {
                addresses.insert(register);
            }
        } else if let Some(call) = line.strip_prefix("call (retval0), ") {
            let called = call.split(',').next().unwrap_or_default();
            if addresses.contains(called) {
                let location: &str = location.expect("the function takes a location");
                let location =
                    location.parse().unwrap_or_else(|_| panic!("the location is computed: {location}"));
                locations.push(location);
            }
        } else if let Some(argument) = line.strip_prefix("st.param.b32") {
            let argument = argument.trim().strip_prefix("[param1], ").and_then(|rest| rest.strip_suffix(';'));
            location = argument.or(location);
        }
    }
    locations
}

/// The locations that are looked for in a kernel's body: those of the votes on whether an event repeats a run.
///
/// # Panics
/// If a location is no constant; or if the vote is not taken by those lanes whose mask was asked for: if there is a branch, or a place to which there is
/// one, between `activemask` and the vote.
pub(crate) fn locations_voted_on(body: &str) -> Vec<u16> {
    let lines: Vec<_> = body.lines().map(str::trim).collect();
    let votes = lines.iter().enumerate().filter(|(_, line)| line.starts_with("vote.all.pred"));
    votes.filter_map(|(vote, _)| voted_on(&lines[..vote])).collect()
}

/// The location that the vote behind these lines is on, if it is on one.
fn voted_on(before: &[&str]) -> Option<u16> {
    let words = |line: &str| -> Vec<String> {
        line.trim_end_matches(';')
            .split([' ', ',', '\t'])
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect()
    };
    // The comparison of masks and that of locations; then the question who is here.
    let (mut mask, mut location) = (None, None);
    for (at, line) in before.iter().enumerate().rev() {
        let words = words(line);
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["xor.b32", "a", _, register] => mask = mask.or(Some(register.to_owned())),
            ["xor.b32", "b", _, register] => location = location.or(Some(register.to_owned())),
            // It is a vote on something else.
            ["setp.eq.u32", "p", value, _] if value != "a" && mask.is_none() => return None,
            ["activemask.b32", register] => {
                assert_eq!(mask.as_deref(), Some(register), "the vote is on another mask");
                let location = location.expect("a mask is compared with a location");
                let moved = before.iter().rev().find_map(|line| {
                    line.strip_prefix(&format!("mov.b32 \t{location}, "))?.strip_suffix(';')
                });
                let moved = moved.unwrap_or_else(|| panic!("the location is computed: {location}"));
                return Some(moved.parse().unwrap_or_else(|_| panic!("the location is computed: {moved}")));
            }
            [first, ..] => assert!(
                !first.starts_with("$L")
                    && first != "ret"
                    && !words.iter().any(|word| word.starts_with("bra")),
                "line {at}: between `activemask` and the vote is `{line}`"
            ),
            [] => {}
        }
    }
    panic!("a vote without `activemask`")
}

#[test]
fn reads_entries_and_locations() {
    let ptx = "
.visible .entry one(
	.param .b32 one_param_0
)
{
	// begin inline asm
	mov.u64 %rd40, warptrace_further;
	// end inline asm
	// begin inline asm
	mov.u64 %rd41, warptrace_further_still;
	// end inline asm
	{ // callseq 5, 0
	st.param.b32 	[param0], %r1;
	st.param.b32 	[param3], 1;
	st.param.b32 	[param1], 165;
	call (retval0), %rd40, (param0, param1, param2, param3, param4), prototype_5;
	} // callseq 5
	{ // callseq 7, 0
	st.param.b32 	[param1], 12;
	call (retval0), %rd41, (param0, param1, param2, param3, param4), prototype_5;
	} // callseq 7
	// begin inline asm
	{
.reg .pred p;
}
	// end inline asm
	{ // callseq 6, 0
	st.param.b32 	[param0], 7;
	call.uni other, (param0);
	} // callseq 6
	ret;
}
.visible .entry two()
{
}
";
    let entries = entries(ptx);
    assert_eq!(entries.keys().copied().collect::<Vec<_>>(), ["one", "two"]);
    assert!(entries["one"].ends_with("ret;\n"));
    assert_eq!(locations_for("warptrace_further", entries["one"]), [165]);
    assert_eq!(locations_for("warptrace_further_still", entries["one"]), [12]);
    assert_eq!(locations_for("warptrace_further", entries["two"]), [0; 0]);
    assert_eq!(locations_voted_on(entries["one"]), [0; 0]);
}

#[cfg(test)]
const VOTE: &str = "
	mov.b32 	%r316, 3;
$L__BB9_19:
	activemask.b32 	%r325;
	mov.b32 	%r317, 1024;
	{
.reg .pred p;
ld.shared.v2.u32 {%r314, %r315}, [%r111+128];
xor.b32 b, %r315, %r316;
and.b32 b, b, %r112;
xor.b32 a, %r314, %r325;
or.b32 a, a, b;
setp.eq.u32 p, a, 0;
vote.all.pred p, p;
}
	shfl.idx.b32 %r5, %r4, %r3, 31;
	setp.eq.u32 p, %r5, %r4;
	vote.all.pred p, p;
";

#[test]
fn reads_votes() {
    assert_eq!(locations_voted_on(VOTE), [3]);
}

#[test]
#[should_panic(expected = "between `activemask` and the vote is `@%p1 bra")]
fn finds_a_branch_in_front_of_a_vote() {
    locations_voted_on(&VOTE.replace("	mov.b32 	%r317, 1024;", "	@%p1 bra 	$L__BB9_19;"));
}
