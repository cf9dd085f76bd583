#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| falconet_tests::fuzz_targets::record::run(input));
