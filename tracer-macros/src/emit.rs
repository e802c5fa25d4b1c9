//! What a kernel becomes: an entry on the GPU, and a function that answers a call on the host.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, Ident, ItemFn, Pat, Path, ReturnType, Type};

/// An argument of a kernel.
pub(crate) struct Argument {
    name: Ident,
    mutable: Option<syn::Token![mut]>,
    kind: Type,
}

/// Answers a kernel's arguments.
///
/// # Errors
/// If the function cannot be a kernel, at the token that says so.
pub(crate) fn arguments(function: &ItemFn) -> syn::Result<Vec<Argument>> {
    let signature = &function.sig;
    let refuse = |node: &dyn quote::ToTokens, what: &str| -> syn::Result<()> {
        Err(syn::Error::new_spanned(node.to_token_stream(), what))
    };
    if let Some(parameter) = signature.generics.params.first() {
        refuse(parameter, "a kernel has no type parameters: its entry in the compiled code has one name")?;
    }
    if let Some(clause) = &signature.generics.where_clause {
        refuse(clause, "a kernel has no type parameters, so nothing can be said of them")?;
    }
    if let ReturnType::Type(_, answer) = &signature.output {
        refuse(
            answer,
            "a kernel answers nothing: write results into an array, a `Global<T>` among the arguments",
        )?;
    }
    if let Some(token) = &signature.constness {
        refuse(token, "a kernel cannot be `const`")?;
    }
    if let Some(token) = &signature.asyncness {
        refuse(token, "a kernel cannot be `async`")?;
    }
    if let Some(token) = &signature.abi {
        refuse(token, "the attribute gives the kernel its ABI: leave this out")?;
    }
    if let Some(token) = &signature.unsafety {
        refuse(token, "launching is what is unsafe: leave this out, and write `unsafe` blocks in the body")?;
    }
    if let Some(token) = &signature.variadic {
        refuse(token, "a kernel has a fixed number of arguments")?;
    }
    signature.inputs.iter().map(argument).collect()
}

fn argument(input: &FnArg) -> syn::Result<Argument> {
    match input {
        FnArg::Receiver(receiver) => {
            Err(syn::Error::new_spanned(receiver, "a kernel is no method: name each argument and its type"))
        }
        FnArg::Typed(typed) => {
            if let Type::Reference(reference) = &*typed.ty {
                return Err(syn::Error::new_spanned(
                    reference,
                    "a kernel's arguments are numbers and `Global<T>`, an array in the device's memory; \
                     references of the host mean nothing there",
                ));
            }
            match &*typed.pat {
                Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(Argument {
                    name: name.ident.clone(),
                    mutable: name.mutability,
                    kind: (*typed.ty).clone(),
                }),
                pattern => Err(syn::Error::new_spanned(pattern, "a kernel's argument is a plain name")),
            }
        }
    }
}

/// The kernel for both devices.
pub(crate) fn kernel(function: &ItemFn, arguments: &[Argument], device: &Path) -> TokenStream {
    let ItemFn { attrs, vis, sig, block } = function;
    let name = &sig.ident;
    let text = name.to_string();
    let declared = arguments.iter().map(|Argument { name, mutable, kind }| quote!(#mutable #name: #kind));
    let names: Vec<&Ident> = arguments.iter().map(|argument| &argument.name).collect();
    let kinds = arguments.iter().map(|argument| &argument.kind);
    // The compiler's message about a type that cannot be an argument points at the type.
    let bytes = arguments.iter().map(
        |Argument { name, kind, .. }| quote_spanned!(kind.span()=> <#kind as #device::KernelArg>::to_bytes(&#name)),
    );
    let mutable: Vec<&Ident> = arguments
        .iter()
        .filter(|argument| argument.mutable.is_some())
        .map(|argument| &argument.name)
        .collect();
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #(#attrs)*
        ///
        /// # Safety
        /// Launched by a host that gives it valid arguments.
        #[unsafe(no_mangle)]
        #vis unsafe extern "ptx-kernel" fn #name(#(#declared),*) #block

        #[cfg(not(target_arch = "nvptx64"))]
        #(#attrs)*
        #vis fn #name(#(#names: #kinds),*) -> #device::KernelCall {
            #device::KernelCall::new(#text, ::std::vec![#(#bytes),*], move || {
                #(let mut #mutable = #mutable;)*
                #block
            })
        }
    }
}
