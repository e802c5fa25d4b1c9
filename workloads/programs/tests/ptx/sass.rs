//! Reading machine code as `cuobjdump -sass` prints it.

use std::collections::BTreeMap;

/// The instructions of each function, in order, without their predicates.
pub(crate) fn functions(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Function : ") {
            current = Some(functions.entry(name.to_owned()).or_default());
        } else if let (Some(instructions), Some(instruction)) = (current.as_mut(), instruction(line)) {
            instructions.push(instruction.to_owned());
        }
    }
    functions
}

/// The instruction of a line `/*0040*/  @!P0 BRA 0x400 ;  /* encoding */`.
fn instruction(line: &str) -> Option<&str> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    // The second half of an encoding stands on a line of its own, and begins with `0x`.
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let instruction = rest.split(';').next()?.trim();
    match instruction.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map(|(_, instruction)| instruction.trim()),
        None => Some(instruction),
    }
}

/// Whether an instruction is this one, with or without modifiers.
pub(crate) fn is(instruction: &str, name: &str) -> bool {
    instruction.split([' ', '.']).next() == Some(name)
}

#[test]
fn reads_functions_and_instructions() {
    const TEXT: &str = "
	code for sm_90
		Function : fractal
	.headerflags	@\"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90\"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                         /* 0x00000a00ff017b82 */
                                                                                  /* 0x000fe20000000800 */
        /*0010*/                   YIELD ;                                        /* 0x0000000000007946 */
                                                                                  /* 0x000e220000002500 */
        /*10b0*/              @!P0 ATOMG.E.ADD.64.STRONG.GPU PT, R6, desc[UR4][R4.64], R6 ; /* 0x0000000000d08947 */
		..........
		Function : mis_find$traced
        /*0000*/                   EXIT ;                                         /* 0x000000000000794d */
";
    let found = functions(TEXT);
    assert_eq!(found.len(), 2);
    assert_eq!(found["mis_find$traced"], ["EXIT"]);
    let fractal = &found["fractal"];
    assert_eq!(fractal[..2], ["LDC R1, c[0x0][0x28]", "YIELD"]);
    assert!(fractal.len() == 3 && is(&fractal[1], "YIELD") && is(&fractal[2], "ATOMG"));
    assert!(!is(&fractal[2], "ATOM"));
}
