//! Reading PTX text.

use std::collections::{BTreeMap, BTreeSet};

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
}
