//! Parses machine code as printed by `cuobjdump -sass`.

use std::collections::BTreeMap;

use super::Function;

/// Maximum number of instructions from the head of a reservation's loop to its atomic.
const CLAIM: usize = 12;

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

/// Returns the instruction of a line `/*0040*/  @!P0 BRA 0x400 ;  /* encoding */`.
fn instruction(line: &str) -> Option<&str> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    // The second half of an encoding is on a separate line and begins with `0x`.
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(rest.split(';').next()?.trim())
}

pub(crate) fn count(instructions: &[String], function: &mut Function) {
    let count = |names: &[&str]| {
        let found = instructions.iter().filter(|instruction| names.iter().any(|name| is(instruction, name)));
        found.count() as u32
    };
    function.instructions = instructions.len() as u32 - count(&["NOP"]);
    function.yields = count(&["YIELD"]);
    function.claims = claims(instructions);
    function.exits = count(&["EXIT"]);
    function.reductions = count(&["RED", "REDG"]);
    function.crc = crc32fast::hash(instructions.join("\n").as_bytes());
}

/// Returns the number of `YIELD`s that are followed by a reservation's atomic.
fn claims(instructions: &[String]) -> u32 {
    let found = instructions.iter().enumerate().filter(|(at, instruction)| {
        let mut next = instructions[*at..].iter().take(1 + CLAIM);
        is(instruction, "YIELD") && next.any(|instruction| is(instruction, "ATOMG"))
    });
    found.count() as u32
}

fn is(instruction: &str, name: &str) -> bool {
    let guarded = instruction.strip_prefix('@').and_then(|guarded| guarded.split_once(' '));
    let instruction = guarded.map_or(instruction, |(_, instruction)| instruction.trim_start());
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
    assert!(
        fractal.len() == 3
            && is(&fractal[1], "YIELD")
            && fractal[2].starts_with("@!P0 ATOMG.")
            && is(&fractal[2], "ATOMG")
    );
    assert!(!is(&fractal[2], "ATOM"));
}

#[test]
fn tells_yields_of_claims_from_others() {
    let counted = |text: &str| {
        let code: Vec<String> = text.split(';').map(|line| line.trim().to_owned()).collect();
        let mut function = Function::default();
        count(&code, &mut function);
        (function.yields, function.claims, function.instructions, function.exits)
    };
    let text = "YIELD; MOV R1, R2; ATOMG.E.ADD.64.STRONG.GPU PT, R6, R6; YIELD; EXIT";
    assert_eq!(counted(text), (2, 1, 5, 1));
    let far = format!("YIELD; {} ATOMG.E.ADD R1", "NOP; ".repeat(12));
    assert_eq!(counted(&far), (1, 0, 2, 0));
}
