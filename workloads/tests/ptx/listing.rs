//! Reading PTX text.

use std::collections::BTreeMap;

/// The kernels of a module: name and body.
pub(crate) fn entries(ptx: &str) -> BTreeMap<&str, &str> {
    let mut entries = BTreeMap::new();
    for part in ptx.split(".visible .entry ").skip(1) {
        let (name, rest) = part.split_once('(').expect("an entry has parameters");
        // Inline assembly brings blocks of its own, so braces are counted.
        let mut depth = 0;
        let mut body = rest.char_indices().skip_while(|(_, c)| *c != '{');
        let end = body.find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let (end, _) = end.expect("an entry ends");
        entries.insert(name, &rest[..end]);
    }
    entries
}

/// The locations that a kernel's body hands to the function that records whatever does not repeat the event before: the
/// constants in the second argument of its calls.
///
/// # Panics
/// If a location is no constant: then two trace points have become one.
pub(crate) fn recorded_locations(body: &str) -> Vec<u16> {
    let mut locations = Vec::new();
    // It is called through a pointer, the only one in a kernel, and takes five arguments.
    let records = |call: &&str| call.contains("param4), prototype_");
    for call in body.split("// callseq ").filter(records) {
        let mut arguments = call.lines().filter_map(|line| line.trim().strip_prefix("st.param.b32"));
        let location = arguments.find_map(|line| line.trim().strip_prefix("[param1], ")?.strip_suffix(';'));
        let location = location.expect("the function takes a location");
        let location = location.parse().unwrap_or_else(|_| panic!("the location is computed: {location}"));
        locations.push(location);
    }
    locations
}

#[test]
fn reads_entries_and_locations() {
    let ptx = "
.visible .entry one(
	.param .b32 one_param_0
)
{
	{ // callseq 5, 0
	st.param.b32 	[param0], %r1;
	st.param.b32 	[param3], 1;
	st.param.b32 	[param1], 165;
	call %rd40, (param0, param1, param2, param3, param4), prototype_5;
	} // callseq 5
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
    assert_eq!(recorded_locations(entries["one"]), [165]);
    assert_eq!(recorded_locations(entries["two"]), [0; 0]);
}
