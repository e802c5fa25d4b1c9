//! What the user's build script has compiled for GPUs.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::errors::{self, Error};

/// Names the file with the kernels' PTX; the build script of the user's package sets it.
const PTX_VARIABLE: &str = "WARPTRACE_KERNELS_PTX";

/// The code of a module for GPUs.
pub(crate) struct DeviceCode {
    /// An expression of the PTX, empty if there is none.
    pub(crate) ptx: TokenStream,
    /// Items beside the module's own.
    pub(crate) items: TokenStream,
}

/// Returns the code that the build script has left, if it has compiled the file of the module that these tokens are.
pub(crate) fn device_code(module: &TokenStream) -> DeviceCode {
    let ptx = std::env::var(PTX_VARIABLE).ok().filter(|path| !path.is_empty()).map(PathBuf::from);
    let file = Span::call_site().local_file();
    let Some(ptx) = ptx.filter(|ptx| has_compiled(ptx, file.as_deref())) else {
        return DeviceCode { ptx: quote!(""), items: TokenStream::new() };
    };
    let errors = fs::read_to_string(ptx.with_extension("error")).unwrap_or_default();
    let files = fs::read_to_string(ptx.with_extension("files")).unwrap_or_default();
    let path = ptx.display().to_string();
    let start = Span::call_site().start().line;
    let own = errors::of_module(&errors, &files, file.as_deref(), start);
    DeviceCode {
        ptx: quote!(::core::include_str!(#path)),
        items: own.iter().map(|error| complaint(error, module)).collect(),
    }
}

/// Whether `file` is one of those that went into the PTX. What cannot be known is taken for true.
fn has_compiled(ptx: &Path, file: Option<&Path>) -> bool {
    let (Some(file), Ok(compiled)) = (file, fs::read_to_string(ptx.with_extension("files"))) else {
        return true;
    };
    let Ok(file) = file.canonicalize() else { return true };
    compiled.lines().any(|compiled| Path::new(compiled).canonicalize().is_ok_and(|found| found == file))
}

/// Fails the build with an error of the device compiler, at the token that it points at.
///
/// It is evaluated when code is generated. So the host's compiler, which finds most mistakes itself, shows those
/// first, and only them.
fn complaint(error: &Error<'_>, module: &TokenStream) -> TokenStream {
    let message = format!(
        "the kernels do not compile for the GPU, where they may use `core` and `warptrace::device` only:\n{}\n",
        error.text
    );
    let span = token_at(module, error.line, error.column).unwrap_or_else(Span::call_site);
    // Not the format itself: a message may have braces.
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

/// The first token at this place, or else in this line.
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
