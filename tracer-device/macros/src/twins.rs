//! Detection of kernels with the same name in files that form one GPU program.

use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::{Item, ItemFn, ItemMod};

use crate::decisions::has;
use crate::functions::modules;
use crate::text::{Positions, canonical, combined};

struct Kernel {
    name: String,
    span: Span,
}

/// Refuses kernels of a module with the name of an earlier kernel in another module, at the second name.
///
/// `files` lists the paths of the files that were compiled together, one per line. `module` is at line
/// `start` of `file`. Kernels with `#[cfg]` are ignored, because the macro cannot evaluate the condition.
pub(crate) fn check(module: &TokenStream, files: &str, file: Option<&Path>, start: usize) -> syn::Result<()> {
    let Ok(own) = syn::parse2::<ItemMod>(module.clone()) else { return Ok(()) };
    let Some(file) = file.map(canonical) else { return Ok(()) };
    let mut errors = Vec::new();
    let before = earlier(files, &file, start);
    for kernel in kernels(&own) {
        let Some((place, line)) = before
            .iter()
            .find_map(|(place, found)| (found.name == kernel.name).then(|| (place, found.span.start().line)))
        else {
            continue;
        };
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
        let error = syn::Error::new(
            kernel.span,
            format!(
                "a kernel named `{}` is in {}, line {line}, too, and all kernels of a package are one program on the \
                 GPU: rename one, or give one a package of its own",
                kernel.name,
                place.strip_prefix(canonical(&package)).unwrap_or(place).display(),
            ),
        );
        errors.push(error);
    }
    combined(errors)
}

/// Returns the kernels before line `start` of `file`, in the order of `files`, with their files.
fn earlier(files: &str, file: &Path, start: usize) -> Vec<(PathBuf, Kernel)> {
    let (mut found, positions) = (Vec::new(), Positions::keep());
    for listed in files.lines().map(|listed| canonical(Path::new(listed))) {
        let parsed = positions.parse(&listed);
        let is_own = listed == file;
        let all = parsed.iter().flat_map(|file| modules(&file.items)).flat_map(kernels);
        let before = all.filter(|kernel| !is_own || kernel.span.start().line < start);
        found.extend(before.map(|kernel| (listed.clone(), kernel)));
        if is_own {
            break;
        }
    }
    found
}

fn kernels(module: &ItemMod) -> Vec<Kernel> {
    let items = module.content.as_ref().map(|(_, items)| items.as_slice()).unwrap_or_default();
    let is_kernel = |function: &&ItemFn| has(&function.attrs, "kernel") && !has(&function.attrs, "cfg");
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some(function),
        _ => None,
    });
    functions
        .filter(is_kernel)
        .map(|function| Kernel {
            name: function.sig.ident.unraw().to_string(),
            span: function.sig.ident.span(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_second_kernel_of_a_name_is_refused() {
        let folder = std::env::temp_dir().join(format!("warptrace-twins-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let module =
            |name: &str, kernels: &str| format!("#[warptrace::kernels]\nmod {name} {{ {kernels} }}\n");
        let first = module("a", "#[kernel] fn step() {} #[kernel] #[cfg(x)] fn maybe() {} fn helper() {}");
        let second = module("b", "#[kernel] fn other() {} #[kernel] fn r#step() {} #[kernel] fn helper() {}");
        let one = file("one.rs", &format!("{first}{second}"));
        let two = file("two.rs", &module("c", "#[kernel] fn other() {} #[kernel] fn maybe() {}"));
        let files = format!("{}\n{}", one.display(), two.display());
        let check = |text: &str, file: &Path, line: usize| -> Vec<String> {
            let tokens = text.split_once('\n').unwrap().1.parse().unwrap();
            let errors = check(&tokens, &files, Some(file), line).err();
            errors.into_iter().flat_map(|all| all.into_iter().map(|error| error.to_string())).collect()
        };
        assert!(check(&first, &one, 1).is_empty(), "the first of a name may have it");
        let found = check(&second, &one, 3);
        assert!(
            found.len() == 1 && found[0].contains("named `step`") && found[0].contains("line 2"),
            "{found:?}"
        );
        let text = fs::read_to_string(&two).unwrap();
        let found = check(&text, &two, 1);
        assert!(found.len() == 1 && found[0].contains("one.rs, line 4"), "{found:?}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
