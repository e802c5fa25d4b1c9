//! Expansion of a kernel: an entry on the GPU, and a function on the host that returns a call.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Ident, ItemFn, Pat, Path, ReturnType, Safety, Type};

pub(crate) struct Argument {
    name: Ident,
    mutable: Option<syn::Token![mut]>,
    kind: Type,
    role: Role,
}

enum Role {
    /// A number, or any other type that is not listed below.
    Value,
    /// `Global<T>`: an array with unsafe access.
    Global,
    /// `&[T]`, with the element type.
    Slice(Type),
    Disjoint(Type),
    Atomic(Type),
}

impl Role {
    fn new(kind: &Type) -> Option<Self> {
        let path = match kind {
            Type::Reference(reference) => {
                return match &*reference.elem {
                    Type::Slice(slice) if reference.mutability.is_none() => {
                        Some(Self::Slice((*slice.elem).clone()))
                    }
                    _ => None,
                };
            }
            Type::Path(path) => path.path.segments.last(),
            _ => None,
        };
        let Some(last) = path else { return Some(Self::Value) };
        let element = match &last.arguments {
            syn::PathArguments::AngleBracketed(found) => found.args.iter().find_map(|found| match found {
                syn::GenericArgument::Type(element) => Some(element.clone()),
                _ => None,
            }),
            _ => None,
        };
        Some(match element {
            Some(element) if last.ident == "DisjointSlice" => Self::Disjoint(element),
            Some(element) if last.ident == "AtomicSlice" => Self::Atomic(element),
            Some(_) if last.ident == "Global" => Self::Global,
            _ => Self::Value,
        })
    }

    fn element(&self) -> Option<&Type> {
        match self {
            Self::Slice(element) | Self::Disjoint(element) | Self::Atomic(element) => Some(element),
            Self::Value | Self::Global => None,
        }
    }
}

/// Returns a kernel's arguments, or an error at the invalid token if the function cannot be a kernel.
pub(crate) fn arguments(function: &ItemFn) -> syn::Result<Vec<Argument>> {
    let signature = &function.sig;
    macro_rules! refuse {
        ($node:ident: $($found:pat = $part:expr, $what:literal;)*) => {$(
            if let $found = $part {
                return Err(syn::Error::new_spanned($node, $what));
            }
        )*};
    }
    refuse! {
        node:
        Some(node) = signature.generics.params.first(),
            "a kernel has no type parameters: its entry in the compiled code has one name";
        Some(node) = &signature.generics.where_clause,
            "a kernel has no type parameters, so nothing can be said of them";
        ReturnType::Type(_, node) = &signature.output,
            "a kernel returns nothing: write results into an array, a `Global<T>` among the arguments";
        Some(node) = &signature.constness, "a kernel cannot be `const`";
        Some(node) = &signature.asyncness, "a kernel cannot be `async`";
        Some(node) = &signature.abi, "the attribute gives the kernel its ABI: leave this out";
        Safety::Unsafe(node) = &signature.safety,
            "launching is what is unsafe: leave this out, and write `unsafe` blocks in the body";
        Some(node) = &signature.variadic, "a kernel has a fixed number of arguments";
    }
    signature.inputs.iter().map(argument).collect()
}

fn argument(input: &FnArg) -> syn::Result<Argument> {
    match input {
        FnArg::Receiver(receiver) => {
            Err(syn::Error::new_spanned(receiver, "a kernel is no method: name each argument and its type"))
        }
        FnArg::Typed(typed) => {
            let Some(role) = Role::new(&typed.ty) else {
                return Err(syn::Error::new_spanned(
                    &typed.ty,
                    "a kernel's arguments are numbers, `&[T]` to read, `DisjointSlice<T>` to write, `AtomicSlice<T>`, and \
                     `Global<T>`",
                ));
            };
            match &*typed.pat {
                Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(Argument {
                    name: name.ident.clone(),
                    mutable: name.mutability,
                    kind: (*typed.ty).clone(),
                    role,
                }),
                pattern => Err(syn::Error::new_spanned(pattern, "a kernel's argument is a plain name")),
            }
        }
    }
}

/// The version of a module that a kernel belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The only version.
    Only,
    /// The version that traces only marks, next to an automatic copy.
    Marked,
    /// The copy that traces every decision.
    Automatic,
}

impl Version {
    pub(crate) fn entry(self, kernel: &Ident) -> String {
        match self {
            Self::Only | Self::Marked => kernel.unraw().to_string(),
            Self::Automatic => format!("{}_automatic", kernel.unraw()),
        }
    }
}

pub(crate) fn kernel(
    function: &ItemFn,
    arguments: &[Argument],
    device: &Path,
    version: Version,
) -> TokenStream {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let name = &sig.ident;
    let text = version.entry(name);
    let is_safe =
        version == Version::Only && !arguments.iter().any(|argument| matches!(argument.role, Role::Global));

    let declared = arguments.iter().map(|Argument { name, mutable, kind, role }| match role.element() {
        Some(element) => quote!(#name: #device::Global<#element>),
        None => quote!(#mutable #name: #kind),
    });
    // Converts the arguments that the device receives to the types that the user's code declares.
    let opened: TokenStream = arguments.iter().map(|argument| open(argument, device)).collect();
    let taken = arguments.iter().map(|Argument { name, kind, role, .. }| match role.element() {
        Some(element) => quote_spanned!(kind.span()=> #name: &'arrays impl #device::DeviceArray<#element>),
        None => quote!(#name: #kind),
    });
    let arrays = arguments.iter().filter(|argument| argument.role.element().is_some());
    let arrays: Vec<&Ident> = arrays.map(|argument| &argument.name).collect();
    // The span makes the compiler report an invalid argument type at the type.
    let bytes = arguments.iter().map(|Argument { name, kind, role, .. }| match role.element() {
        Some(element) => quote!(<#device::Global<#element> as #device::KernelArg>::to_bytes(&#name)),
        None => quote_spanned!(kind.span()=> <#kind as #device::KernelArg>::to_bytes(&#name)),
    });
    let mutable = arguments.iter().filter(|it| it.mutable.is_some() && it.role.element().is_none());
    let mutable: Vec<&Ident> = mutable.map(|argument| &argument.name).collect();
    let memory = arguments.iter().enumerate().filter_map(|(number, Argument { name, kind, role, .. })| {
        let is_written = match role {
            Role::Slice(_) => false,
            Role::Atomic(_) => true,
            Role::Disjoint(_) => {
                return Some(quote!(#device::ArgumentMemory::owned(#number, #name, <#kind>::IS_BY_THREAD)));
            }
            _ => return None,
        };
        Some(quote!(#device::ArgumentMemory::new(#number, #name, #is_written)))
    });
    let memory: Vec<TokenStream> = memory.collect();
    let call = quote! {
        #device::KernelCall::new(#text, ::std::vec![#(#bytes),*], move || {
            #(let mut #mutable = #mutable;)*
            #opened
            #block
        })
    };
    let call = if version == Version::Marked {
        let names = arguments.iter().map(|argument| &argument.name);
        quote!({
            let copy = automatic::#name(#(#names),*);
            #call.of_module(&MODULE).with_automatic(copy)
        })
    } else {
        quote!(#call.of_module(&MODULE))
    };
    let (answer, call) = if is_safe {
        let values = arguments.iter().filter(|argument| matches!(argument.role, Role::Value));
        let checks = values.map(|Argument { kind, .. }| {
            quote_spanned!(kind.span()=> const {
                ::core::assert!(
                    !<#kind as #device::KernelArg>::IS_MEMORY,
                    "write `Global<T>` as such, so that the attribute sees it"
                );
            })
        });
        let call = quote! {
            #(#checks)*
            let _warptrace_memory = ::std::vec![#(#memory),*];
            let _warptrace_call = #call;
            // SAFETY: the kernel is a function of safe arguments, and these are all that name memory.
            unsafe { #device::SafeCall::new(_warptrace_call, _warptrace_memory) }
        };
        (quote!(#device::SafeCall<'arrays>), call)
    } else {
        (quote!(#device::KernelCall), call)
    };
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #(#attrs)*
        ///
        /// # Safety
        /// The host that launches the kernel passes valid arguments.
        #[unsafe(export_name = #text)]
        #vis unsafe extern "ptx-kernel" fn #name(#(#declared),*) {
            #opened
            #block
        }

        #[cfg(not(target_arch = "nvptx64"))]
        #(#attrs)*
        #vis fn #name<'arrays>(#(#taken),*) -> #answer {
            #(let #arrays = #device::DeviceArray::global(#arrays);)*
            #call
        }
    }
}

/// Converts the device's array to the slice type that the user's code declares.
fn open(argument: &Argument, device: &Path) -> TokenStream {
    let Argument { name, mutable, kind, role } = argument;
    match role {
        Role::Slice(_) => quote! {
            // SAFETY: the host guarantees that the array is valid and that nothing writes it.
            let #mutable #name: #kind = unsafe { #device::trace::slice(&#name) };
        },
        Role::Disjoint(_) => quote! {
            // SAFETY: the host guarantees that the array is valid and overlaps no other argument.
            let #mutable #name: #kind = unsafe { #device::DisjointSlice::new(&#name) };
        },
        Role::Atomic(_) => quote! {
            // SAFETY: the host guarantees that the array is valid and overlaps no other argument.
            let #mutable #name: #kind = unsafe { #device::AtomicSlice::new(&#name) };
        },
        _ => TokenStream::new(),
    }
}
