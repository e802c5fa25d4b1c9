//! From the module as it is written to the module as it is compiled.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Item, ItemMod, parse2};

use crate::arguments::Arguments;
use crate::decisions::has;
use crate::device_code::{DeviceCode, device_code};
use crate::functions::{self, Function};
use crate::insert::Insert;
use crate::table::Table;
use crate::{decisions, emit};

/// Expands `#[kernels]`.
///
/// # Errors
/// If the arguments, the module or one of its functions is not what it must be; all that is wrong with the
/// functions is said at once.
pub(crate) fn expand(arguments: TokenStream, module: TokenStream) -> syn::Result<TokenStream> {
    let Arguments { device, first_id } = parse2(arguments)?;
    let source_hash = hash(&module.to_string());
    let mut module = match parse2::<Item>(module)? {
        Item::Mod(module) => module,
        other => return Err(syn::Error::new_spanned(&other, "#[kernels] goes before a module of functions")),
    };
    let Some((_, items)) = &mut module.content else {
        return Err(syn::Error::new_spanned(
            &module,
            "#[kernels] needs to see the functions: write the module with its contents, `mod name { ... }`",
        ));
    };

    let mut errors = Vec::new();
    let mut table = Table::starting_at(first_id);
    insert(items, &device, &mut table, &mut errors);
    errors.extend(table.check().err());

    let mut kernels = Vec::new();
    let mut content = TokenStream::new();
    for item in items {
        match item {
            Item::Fn(function) if has(&function.attrs, "kernel") => {
                function.attrs.retain(|attribute| !attribute.path().is_ident("kernel"));
                match emit::arguments(function) {
                    Ok(arguments) => content.extend(emit::kernel(function, &arguments, &device)),
                    Err(error) => errors.push(error),
                }
                kernels.push(function.sig.ident.to_string());
            }
            other => other.to_tokens(&mut content),
        }
    }
    if let Some(all) = errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    }) {
        return Err(all);
    }

    let ItemMod { attrs, vis, ident, .. } = &module;
    let name = ident.to_string();
    let rows = table.rows(&device);
    let DeviceCode { ptx, items: checks } = device_code();
    Ok(quote! {
        #(#attrs)*
        #vis mod #ident {
            #content

            #checks

            /// The locations of this module's functions, by id.
            #[cfg(not(target_arch = "nvptx64"))]
            pub const LOCATIONS: &[#device::SourceLocation] = #rows;

            /// This module's kernels, for a session.
            #[cfg(not(target_arch = "nvptx64"))]
            pub const MODULE: #device::KernelModule = #device::KernelModule {
                name: #name,
                file: ::core::file!(),
                kernels: &[#(#kernels),*],
                locations: LOCATIONS,
                source_hash: #source_hash,
                ptx: #ptx,
            };
        }
    })
}

/// Puts trace points into the functions, and takes the attributes out that only this macro knows.
fn insert(items: &mut [Item], device: &syn::Path, table: &mut Table, errors: &mut Vec<syn::Error>) {
    let mut functions = functions::list(items);
    let noisy = functions::noisy(&functions);
    let mut insert = Insert::new(device, &noisy, table, errors);
    for function in &mut functions {
        let is_traced = function.is_traced();
        let Function { name, attributes, signature, block } = function;
        for attribute in attributes.iter() {
            if let Some(name @ ("kernel" | "untraced")) =
                attribute.path().get_ident().map(ToString::to_string).as_deref()
                && let Err(error) = attribute.meta.require_path_only()
            {
                insert.errors.push(syn::Error::new(error.span(), format!("`#[{name}]` takes no arguments")));
            }
        }
        let is_kernel = has(attributes, "kernel");
        let decides = || decisions::in_statements(&block.stmts, &decisions::Noisy::new());
        if is_traced && (is_kernel || decides()) {
            insert.function(name, &signature.ident, block, !is_kernel);
        }
        attributes.retain(|attribute| !attribute.path().is_ident("untraced"));
    }
}

/// FNV-1a of 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
