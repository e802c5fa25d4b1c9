//! Snapshots of the parse results of real PTX from several compilers, and of one text with each construct.
//! `INSTA_UPDATE=always cargo test -p warptrace-ptx` rewrites the snapshots.

use warptrace_ptx::{Module, fuzzing};

macro_rules! golden {
    ($($test:ident: $name:literal, $statements:literal;)*) => {$(
        #[test]
        fn $test() {
            let text = include_str!(concat!("../golden/", $name, ".ptx"));
            assert!(fuzzing::check(text), "it is a module");
            let module = Module::parse(text).expect("it is a module");
            insta::with_settings!({ snapshot_path => "../golden", prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!($name, crate::outline::outline(&module, $statements));
            });
            // The same with Windows line ends.
            let windows = text.replace('\n', "\r\n");
            assert!(fuzzing::check(&windows));
            let again = Module::parse(&windows).expect("it is a module");
            assert_eq!(
                crate::outline::outline(&again, $statements).replace("\\r\\n", "\\n"),
                crate::outline::outline(&module, $statements)
            );
        }
    )*};
}

golden! {
    each_construct: "constructs", true;
    nvcc: "nvcc", false;
    nvcc_with_lines: "nvcc-lineinfo", true;
    nvcc_with_debug_data: "nvcc-debug", false;
    nvrtc: "nvrtc", false;
    rustc: "rustc", false;
    llc: "llc", true;
    numba: "numba", false;
}
