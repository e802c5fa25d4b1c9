//! Names of functions as in the source.

use std::collections::HashMap;

use cpp_demangle::{DemangleOptions, Symbol};

/// Limit on the characters of a name. Longer names are mostly nested templates.
const MAX_NAME_CHARS: usize = 300;

/// Demangles the name of a C++ or Rust function, without parameters. Returns other names unchanged.
pub(crate) fn readable(mangled: &str) -> String {
    demangled(mangled, DemangleOptions::new().no_params().no_return_type())
}

/// Like [`readable`], for each name of a list. Functions with the same name keep their parameters.
pub(crate) fn all_readable(mangled: &[&str]) -> Vec<String> {
    let short: Vec<String> = mangled.iter().map(|name| readable(name)).collect();
    let mut counts = HashMap::new();
    for name in &short {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    let distinct = |(short, mangled): (&String, &&str)| match counts[short.as_str()] {
        1 => short.clone(),
        _ => demangled(mangled, DemangleOptions::new().no_return_type()),
    };
    short.iter().zip(mangled).map(distinct).collect()
}

fn demangled(mangled: &str, options: DemangleOptions) -> String {
    let name = if let Ok(name) = rustc_demangle::try_demangle(mangled) {
        format!("{name:#}")
    } else {
        let symbol = mangled.starts_with("_Z").then(|| Symbol::new(mangled).ok()).flatten();
        symbol
            .and_then(|symbol| symbol.demangle_with_options(&options).ok())
            .unwrap_or_else(|| mangled.to_owned())
    };
    let name = without_tags(without_internal(&name));
    match name.char_indices().nth(MAX_NAME_CHARS) {
        None => name,
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// Removes the namespace that nvcc gives to functions with internal linkage: `_INTERNAL_3974920d_4_a_cu_f38::f`.
fn without_internal(name: &str) -> &str {
    let is_path = |path: &&str| path.starts_with("_INTERNAL_") && !path.contains([' ', '<', '(']);
    name.split_once("::").filter(|(path, _)| is_path(path)).map_or(name, |(_, rest)| rest)
}

/// Removes tags such as `[abi:v1]`, with which Numba distinguishes versions of a function.
fn without_tags(name: &str) -> String {
    let mut parts = name.split("[abi:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + part.split_once(']').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_in_the_source() {
        for (mangled, name) in [
            ("saxpy", "saxpy"),
            ("_Z5saxpyIfEviT_PKS0_PS0_", "saxpy<float>"),
            ("_ZN6kernel4stepEPii", "kernel::step"),
            ("_ZN5crate6kernel17h0123456789abcdefE", "crate::kernel"),
            ("_ZN8__main__1fB2v1B3xyzEi", "__main__::f"),
            ("_ZN44_INTERNAL_3974920d_13_ECL_MST_10_cu_f38045184findEiPi", "find"),
            ("_Zwhatever", "_Zwhatever"),
            ("", ""),
        ] {
            assert_eq!(readable(mangled), name);
        }
        let overloads = ["_Z4spinPi", "_Z4spinPf", "_Z5saxpyIfEviT_PKS0_PS0_"];
        assert_eq!(all_readable(&overloads), ["spin(int*)", "spin(float*)", "saxpy<float>"]);
        assert_eq!(readable(&"x".repeat(5000)).chars().count(), MAX_NAME_CHARS + 1);
    }
}
