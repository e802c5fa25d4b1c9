//! Any events through `raw` and `ecl` and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_format::codec::fuzzing::round_trip(data));
