//! The GPU code that the user's build script has compiled.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Ident;

use crate::errors::{self, Error};
use crate::twins;

/// Path of the file with the kernels' PTX. The build script of the user's package sets it.
const PTX_VARIABLE: &str = "WARPTRACE_KERNELS_PTX";
/// Disables GPU code for the kernels.
const SKIP_VARIABLE: &str = "WARPTRACE_NO_DEVICE_CODE";

#[derive(Default)]
pub(crate) struct DeviceCode {
    /// Expression for the PTX; empty if none exists.
    pub(crate) ptx: TokenStream,
    /// Reason for missing PTX, as the end of a sentence. Empty if PTX may exist.
    pub(crate) without: String,
    pub(crate) items: TokenStream,
}

/// Returns the GPU code of a module, if the build script has compiled its file; an error if a kernel has the
/// name of an earlier one. `tokens` is the module and `name` is its name. If `is_users` is set and GPU code
/// is missing unintentionally, the compiler warns. Without `is_users`, another package holds the code.
pub(crate) fn device_code(tokens: &TokenStream, name: &Ident, is_users: bool) -> syn::Result<DeviceCode> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = Span::call_site().local_file();
    let start = Span::call_site().start().line;
    let ptx = variable(PTX_VARIABLE).map(PathBuf::from);
    let skips = variable(SKIP_VARIABLE).is_some_and(|value| value != "0");
    let Some(ptx) = ptx.as_ref().filter(|ptx| has_compiled(ptx, file.as_deref())) else {
        let without = if skips {
            format!("{SKIP_VARIABLE} was set when it was built")
        } else {
            forgotten(ptx.as_deref(), variable("OUT_DIR").is_some(), file.as_deref())
        };
        let items = if is_users && !skips { warning(name, &without) } else { TokenStream::new() };
        return Ok(DeviceCode { ptx: quote!(""), without, items });
    };
    let files = fs::read_to_string(ptx.with_extension("files")).unwrap_or_default();
    twins::check(tokens, &files, file.as_deref(), start)?;
    let errors = fs::read_to_string(ptx.with_extension("error")).unwrap_or_default();
    let own = errors::of_module(&errors, &files, file.as_deref(), start);
    let without = match ptx.metadata() {
        Ok(file) if file.len() != 0 => String::new(),
        _ if skips => format!("{SKIP_VARIABLE} was set when it was built"),
        _ => "there was no device compiler when it was built: add one, `rustup component add rust-src` to Rust 1.96 or \
              later or `cargo xtask setup` in warptrace's sources, and build again"
            .to_owned(),
    };
    let path = ptx.display().to_string();
    Ok(DeviceCode {
        ptx: quote!(::core::include_str!(#path)),
        without,
        items: own.iter().map(|error| complaint(error, tokens)).collect(),
    })
}

/// Explains why the build has no GPU code of a file, and how to add it.
fn forgotten(ptx: Option<&Path>, has_script: bool, file: Option<&Path>) -> String {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let shown = |file: &Path| file.strip_prefix(&package).unwrap_or(file).display().to_string();
    let own = file.map_or_else(|| "src/kernels.rs".to_owned(), shown);
    match ptx {
        Some(ptx) => {
            let files = fs::read_to_string(ptx.with_extension("files")).unwrap_or_default();
            let listed: Vec<String> =
                files.lines().map(|file| format!("{:?}", shown(Path::new(file)))).collect();
            let listed = listed.join(", ");
            format!(
                "build.rs compiles {listed} only; name this file, too: \
                 `warptrace_build::compile_all([{listed}, {own:?}])`"
            )
        }
        None if has_script => {
            format!("build.rs does not compile it; write `warptrace_build::compile({own:?});` there")
        }
        None => format!(
            "its package has no build.rs; write one, `fn main() {{ warptrace_build::compile({own:?}); }}`, with \
             `warptrace-build` among the [build-dependencies]"
        ),
    }
}

/// Makes the compiler warn that the module `name` has no GPU code. On stable Rust, an attribute macro can
/// only emit a warning through a use of a deprecated item.
fn warning(name: &Ident, without: &str) -> TokenStream {
    let note = format!(
        "`{name}` runs on the simulator only, as there is no code of it for GPUs: {without}. To leave it so, set \
         {SKIP_VARIABLE}=1 (in .cargo/config.toml, below [env])"
    );
    let used = Ident::new("without_gpu_code", name.span());
    quote! {
        #[cfg(not(any(test, target_arch = "nvptx64")))]
        const _: () = {
            #[deprecated(note = #note)]
            #[allow(non_upper_case_globals)]
            const without_gpu_code: () = ();
            #used
        };
    }
}

/// Returns true if `file` was compiled into the PTX, or if that is unknown.
fn has_compiled(ptx: &Path, file: Option<&Path>) -> bool {
    let (Some(file), Ok(compiled)) = (file, fs::read_to_string(ptx.with_extension("files"))) else {
        return true;
    };
    let Ok(file) = file.canonicalize() else { return true };
    compiled.lines().any(|compiled| Path::new(compiled).canonicalize().is_ok_and(|found| found == file))
}

/// Fails the build with an error of the device compiler, at the token that it refers to. It is evaluated at
/// code generation, because the host compiler finds most mistakes itself and then reports only those.
fn complaint(error: &Error<'_>, module: &TokenStream) -> TokenStream {
    let message = format!(
        "the kernels do not compile for the GPU, where they may use `core` and `warptrace::device` only:\n{}\n",
        error.text
    );
    let span = token_at(module, error.line, error.column).unwrap_or_else(Span::call_site);
    // Passed as an argument, because the message may contain braces.
    let panic = quote_spanned!(span=> ::core::panic!("{}", #message));
    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            struct DeviceCode<T>(T);
            impl<T> DeviceCode<T> {
                const COMPILES: () = #panic;
                fn check() {
                    Self::COMPILES
                }
            }
            #[used]
            static CHECKED: fn() = DeviceCode::<()>::check;
        };
    }
}

/// Returns the token at this position, or the first token in this line otherwise.
fn token_at(tokens: &TokenStream, line: usize, column: usize) -> Option<Span> {
    fn all(tokens: TokenStream, found: &mut Vec<Span>) {
        for token in tokens {
            found.push(token.span());
            if let TokenTree::Group(group) = token {
                all(group.stream(), found);
            }
        }
    }
    let mut spans = Vec::new();
    all(tokens.clone(), &mut spans);
    spans.retain(|span| span.start().line == line);
    let exact = spans.iter().copied().find(|span| span.start().column + 1 == column);
    exact.or_else(|| spans.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_have_no_part_in_the_code() {
        let folder = std::env::temp_dir().join(format!("warptrace-macros-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        fs::write(file("one.rs"), "").unwrap();
        fs::write(file("two.rs"), "").unwrap();
        let ptx = file("kernels.ptx");
        assert!(has_compiled(&ptx, Some(&file("two.rs"))), "an older build script leaves no list");
        fs::write(file("kernels.files"), format!("{}\n/no/such/file.rs", file("one.rs").display())).unwrap();
        assert!(has_compiled(&ptx, Some(&file("../").join(folder.file_name().unwrap()).join("one.rs"))));
        assert!(!has_compiled(&ptx, Some(&file("two.rs"))));
        assert!(has_compiled(&ptx, None));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_error_is_complained_of_where_it_is() {
        let module: TokenStream = "mod k {\n    fn f() {\n        g(x.sin())\n    }\n}".parse().unwrap();
        let at = |line, column| token_at(&module, line, column).map(|span| span.start().column);
        assert_eq!((at(3, 13), at(3, 2), at(9, 1)), (Some(12), Some(8), None));
        let error = Error { line: 3, column: 13, text: "error[E0308]: a { brace" };
        let text = complaint(&error, &module).to_string();
        assert!(text.contains("a { brace") && text.contains("panic ! (\"{}\""), "{text}");
    }
}
