//! Any bytes as a trace file: opened, verified and decoded, as they are and with their checksums repaired.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_decoder::fuzzing::open(data));
