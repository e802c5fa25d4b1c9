//! Any bytes as a trace file: analysed, and every view added up to the same sums.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_analysis::fuzzing::analyse_arbitrary(data));
