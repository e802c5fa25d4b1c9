//! What the user's build script has compiled for GPUs.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

/// Names the file with the kernels' PTX; the build script of the user's package sets it.
const PTX_VARIABLE: &str = "WARPTRACE_KERNELS_PTX";

/// The code of a module for GPUs.
pub(crate) struct DeviceCode {
    /// An expression of the PTX, empty if there is none.
    pub(crate) ptx: TokenStream,
    /// Items beside the module's own.
    pub(crate) items: TokenStream,
}

/// Answers the code that the build script has left, if it has compiled the file of this module.
pub(crate) fn device_code() -> DeviceCode {
    let ptx = std::env::var(PTX_VARIABLE).ok().filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(ptx) = ptx.filter(|ptx| has_compiled(ptx, Span::call_site().local_file().as_deref())) else {
        return DeviceCode { ptx: quote!(""), items: TokenStream::new() };
    };
    let error = fs::read_to_string(ptx.with_extension("error")).unwrap_or_default();
    let path = ptx.display().to_string();
    DeviceCode { ptx: quote!(::core::include_str!(#path)), items: complaint(&error) }
}

/// Whether `file` is one of those that went into the PTX. What cannot be known is taken for true.
fn has_compiled(ptx: &Path, file: Option<&Path>) -> bool {
    let (Some(file), Ok(compiled)) = (file, fs::read_to_string(ptx.with_extension("files"))) else {
        return true;
    };
    let Ok(file) = file.canonicalize() else { return true };
    compiled.lines().any(|compiled| Path::new(compiled).canonicalize().is_ok_and(|found| found == file))
}

/// Fails the build with what the device compiler said; nothing if it said nothing.
///
/// It is evaluated when code is generated. So the host's compiler, which finds most mistakes itself, shows those
/// first, and only them.
fn complaint(error: &str) -> TokenStream {
    if error.is_empty() {
        return TokenStream::new();
    }
    let message = format!(
        "the kernels do not compile for the GPU, where they may use `core` and `warptrace::device` only:\n{error}\n"
    );
    let panic = quote_spanned!(Span::call_site()=> ::core::panic!(#message));
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
    fn only_an_error_is_complained_of() {
        assert!(complaint("").is_empty());
        let text = complaint("error[E0308]: mismatched types").to_string();
        assert!(text.contains("E0308") && text.contains("static CHECKED"), "{text}");
    }
}
