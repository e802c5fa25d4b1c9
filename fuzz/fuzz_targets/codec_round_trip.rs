//! Any events through each codec and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_format::codec::fuzzing::round_trip(data));
