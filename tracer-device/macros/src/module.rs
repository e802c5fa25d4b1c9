//! Expansion of a module.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{AttrStyle, Attribute, Ident, Item, ItemMod, parse2};

use crate::arguments::{self, Arguments};
use crate::decisions::{self, Noisy, Traced, has};
use crate::device_code::{DeviceCode, device_code};
use crate::emit::{self, Version};
use crate::functions::{self, Function, is_kernels};
use crate::insert::Insert;
use crate::strip::strip;
use crate::table::LocationTable;
use crate::text::combined;
use crate::waits;

/// Expands `#[kernels]`. Returns an error if the arguments, the module or one of its functions is invalid.
/// All errors in functions are reported together.
pub(crate) fn expand(arguments: TokenStream, module: TokenStream) -> syn::Result<TokenStream> {
    let arguments: Arguments = parse2(arguments)?;
    let tokens = module.clone();
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
    misplaced(items, &mut errors);
    let source = ModuleSource { text: text(), tokens: &tokens, name: &module.ident, arguments: &arguments };
    let content = match arguments.automatic {
        None => source.traced(items, Version::Only, &mut errors),
        Some(_) => {
            let mut copy = copies(items, &arguments, &mut errors);
            let trees = &arguments.callees;
            let marked = source.traced(items, Version::Marked, &mut errors);
            let copy = source.traced(&mut copy, Version::Automatic, &mut errors);
            quote! {
                #marked

                /// The kernels with a trace point at every decision.
                pub mod automatic {
                    #[allow(unused_imports, reason = "made from what stands around it")]
                    use super::*;
                    #(use #trees;)*
                    #copy
                }
            }
        }
    };
    combined(errors)?;
    let ItemMod { attrs, vis, ident, .. } = &mut module;
    goes_before(attrs);
    Ok(quote! {
        #(#attrs)*
        #vis mod #ident { #content }
    })
}

/// Refuses `#[kernel]` in invalid places: before methods, and in nested modules.
fn misplaced(items: &[Item], errors: &mut Vec<syn::Error>) {
    struct Search<'a>(&'a mut Vec<syn::Error>);
    impl<'ast> Visit<'ast> for Search<'_> {
        fn visit_item_mod(&mut self, module: &'ast ItemMod) {
            // A nested module with the attribute is expanded separately.
            if !is_kernels(&module.attrs) {
                visit::visit_item_mod(self, module);
            }
        }
        fn visit_attribute(&mut self, attribute: &'ast Attribute) {
            if attribute.path().is_ident("kernel") {
                self.0.push(syn::Error::new_spanned(
                    attribute,
                    "a kernel is a function of the module that has #[warptrace::kernels]: no method, and in no module of \
                     that module",
                ));
            }
        }
    }
    let mut search = Search(errors);
    for item in items {
        match item {
            Item::Fn(function) => search.visit_block(&function.block),
            other => search.visit_item(other),
        }
    }
}

struct ModuleSource<'a> {
    text: TokenStream,
    tokens: &'a TokenStream,
    name: &'a Ident,
    arguments: &'a Arguments,
}

impl ModuleSource<'_> {
    /// Returns the items with trace points, and their tables.
    fn traced(&self, items: &mut [Item], version: Version, errors: &mut Vec<syn::Error>) -> TokenStream {
        let Self { text, tokens, name, arguments } = self;
        let device = &arguments.device;
        let (only_marked, first) = match arguments.automatic.filter(|_| version == Version::Automatic) {
            Some(first) => (false, first),
            None => (arguments.only_marked, arguments.first_id),
        };
        let mut table = LocationTable::starting_at(first);
        insert(items, arguments, only_marked, &mut table, errors);
        errors.extend(table.check().err());
        let marks = only_marked.then(|| table.marks());
        let (content, kernels) = compiled(items, device, version, errors);
        let ([rows, waits], values) = (table.rows(device), table.value_rows(device));
        let base = waits::declared(&table);
        let code = device_code(tokens, name, arguments.is_users).unwrap_or_else(|error| {
            errors.push(error);
            DeviceCode::default()
        });
        let DeviceCode { ptx, without, items: checks } = code;
        quote! {
            #base

            #content

            #marks

            #checks

            /// The locations of this module's functions, by id.
            #[cfg(not(target_arch = "nvptx64"))]
            pub const LOCATIONS: &[#device::SourceLocation] = #rows;

            /// This module's kernels, for a session.
            #[cfg(not(target_arch = "nvptx64"))]
            pub const MODULE: #device::KernelModule = #device::KernelModule {
                name: ::core::module_path!(),
                file: ::core::file!(),
                kernels: &[#(#kernels),*],
                locations: LOCATIONS,
                waits: #waits,
                values: #values,
                source: #text,
                ptx: #ptx,
                without_ptx: #without,
            };
        }
    }
}

/// Returns the items after expansion, and the names of the kernels' entries.
fn compiled(
    items: &mut [Item],
    device: &syn::Path,
    version: Version,
    errors: &mut Vec<syn::Error>,
) -> (TokenStream, Vec<String>) {
    let mut kernels = Vec::new();
    let mut content = TokenStream::new();
    for item in items {
        match item {
            Item::Fn(function) if has(&function.attrs, "kernel") => {
                function.attrs.retain(|attribute| !attribute.path().is_ident("kernel"));
                goes_before(&mut function.attrs);
                match emit::arguments(function) {
                    Ok(arguments) => content.extend(emit::kernel(function, &arguments, device, version)),
                    Err(error) => errors.push(error),
                }
                kernels.push(version.entry(&function.sig.ident));
            }
            other => other.to_tokens(&mut content),
        }
    }
    (content, kernels)
}

/// Turns inner attributes, such as `#![allow(...)]`, into outer ones.
fn goes_before(attributes: &mut [Attribute]) {
    attributes.iter_mut().for_each(|attribute| attribute.style = AttrStyle::Outer);
}

/// Copies the kernels and the functions with decisions, without their marks.
fn copies(items: &[Item], arguments: &Arguments, errors: &mut Vec<syn::Error>) -> Vec<Item> {
    let mut items = items.to_vec();
    let mut functions = functions::list(&mut items);
    functions.iter_mut().for_each(|function| strip(function.block));
    let noisy = functions::noisy(&functions, &callees(arguments), Traced::Decisions);
    for function in &functions {
        let own = &function.signature.ident;
        if *own != function.name && noisy.contains(&own.to_string()) {
            errors.push(syn::Error::new(
                own.span(),
                "a method cannot be copied, so it cannot be traced: make it a function, or name no traced \
                 function like it",
            ));
        }
    }
    items.retain(|item| match item {
        Item::Fn(function) => {
            has(&function.attrs, "kernel") || noisy.contains(&function.sig.ident.to_string())
        }
        _ => false,
    });
    items
}

fn callees(arguments: &Arguments) -> Noisy {
    arguments.callees.iter().flat_map(arguments::names).collect()
}

/// Inserts trace points into the functions, and removes the attributes that only this macro defines.
fn insert(
    items: &mut [Item],
    arguments: &Arguments,
    only_marked: bool,
    table: &mut LocationTable,
    errors: &mut Vec<syn::Error>,
) {
    let traced = if only_marked { Traced::Marks } else { Traced::Decisions };
    let mut functions = functions::list(items);
    let noisy = functions::noisy(&functions, &callees(arguments), traced);
    let own = functions.iter().map(|function| function.signature.ident.to_string()).collect();
    let mut insert = Insert::new(&arguments.device, only_marked, (&noisy, own), table, errors);
    for function in &mut functions {
        let of_it = function.traced(traced);
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
        let is_traced = match of_it {
            Traced::Nothing => false,
            Traced::Decisions => is_kernel || decisions::in_statements(&block.stmts, &Noisy::new(), of_it),
            Traced::Marks => true,
        };
        if is_traced {
            let leaves_events = of_it == Traced::Decisions || noisy.contains(&signature.ident.to_string());
            insert.function(name, &signature.ident, block, !is_kernel && leaves_events);
        } else if of_it == Traced::Decisions {
            insert.only_waits(name, block);
        }
        attributes.retain(|attribute| !attribute.path().is_ident("untraced"));
    }
}

/// Returns an expression for the text of the file that is being compiled.
fn text() -> TokenStream {
    let file = proc_macro2::Span::call_site().local_file();
    let name = file.as_deref().and_then(|file| file.file_name()?.to_str());
    // `include_str!` resolves the name relative to the file's folder.
    name.map_or_else(|| quote!(""), |name| quote!(::core::include_str!(#name)))
}
