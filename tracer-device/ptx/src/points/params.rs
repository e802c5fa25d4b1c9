//! Layout of a kernel's parameter buffer.

use super::ParamLayout;
use crate::Param;
use crate::parse::elements;

/// Maximum size of a parameter buffer in bytes: eight times the maximum of any driver.
const MAX_BYTES: u64 = 1 << 18;

/// Lays out parameters as the driver does: in order, each at the next multiple of its alignment. Returns a
/// message if a parameter has no valid size or alignment, or the limit is exceeded.
pub(crate) fn layout(params: &[Param<'_>]) -> Result<Vec<ParamLayout>, String> {
    let mut end = 0_u64;
    let mut layouts = Vec::with_capacity(params.len());
    for param in params {
        let problem = |what: &str| format!("its parameter `{}` cannot be laid out: {what}", param.name);
        let (element, elements) = elements_of(param.ty, param.dimensions).map_err(|what| problem(&what))?;
        let align = u64::from(param.align.unwrap_or_default()).max(element);
        if !align.is_power_of_two() {
            return Err(problem("its alignment is no power of two"));
        }
        let size = element.checked_mul(elements).filter(|size| *size <= MAX_BYTES);
        let size = size.ok_or_else(|| problem("it is too large"))?;
        let offset = end.checked_next_multiple_of(align).filter(|offset| *offset <= MAX_BYTES);
        let offset = offset.ok_or_else(|| problem("it is too far from the first one"))?;
        end = offset + size;
        let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        layouts.push(ParamLayout { size: bytes(size), align: bytes(align), offset: bytes(offset) });
    }
    Ok(layouts)
}

/// Returns the size in bytes of a variable's element and the number of elements, or a message if unknown.
pub(crate) fn elements_of(ty: &str, dimensions: Option<&str>) -> Result<(u64, u64), String> {
    let element = element_bytes(ty).ok_or_else(|| format!("its type is `{ty}`"))?;
    match dimensions.map(|dimensions| elements(dimensions).ok_or(dimensions)) {
        None => Ok((element, 1)),
        Some(Ok(elements)) => Ok((element, elements)),
        Some(Err(dimensions)) => Err(format!("`{dimensions}` is no size")),
    }
}

fn element_bytes(ty: &str) -> Option<u64> {
    // References to textures, samplers and surfaces are 64-bit handles.
    if [".texref", ".samplerref", ".surfref"].contains(&ty) {
        return Some(8);
    }
    let bits = match ty.strip_prefix('.')? {
        "f16x2" | "bf16x2" => 32,
        "bf16" => 16,
        ty => ty.strip_prefix(['b', 'u', 's', 'f'])?.parse::<u64>().ok()?,
    };
    [8, 16, 32, 64, 128].contains(&bits).then_some(bits / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    fn layout_of(params: &str) -> Result<Vec<(usize, usize, usize)>, String> {
        let text = format!(".version 8.0\n.target sm_90\n.entry k({params}) {{ ret; }}");
        let module = Module::parse(&text).expect("it is PTX");
        let layouts = layout(&module.functions[0].params)?;
        Ok(layouts.iter().map(|layout| (layout.size, layout.align, layout.offset)).collect())
    }

    #[test]
    fn parameters_follow_each_other_at_their_alignment() {
        assert_eq!(layout_of(""), Ok(vec![]));
        let params =
            ".param .u8 a, .param .u64 .ptr .global .align 1 b, .param .align 4 .b8 c[6], .param .f32 d";
        assert_eq!(layout_of(params), Ok(vec![(1, 1, 0), (8, 8, 8), (6, 4, 16), (4, 4, 24)]));
        assert_eq!(
            layout_of(".param .u16 a, .param .align 64 .b8 map[128]"),
            Ok(vec![(2, 2, 0), (128, 64, 64)])
        );
        assert_eq!(layout_of(".param .b8 a[3][2], .param .u16 b"), Ok(vec![(6, 1, 0), (2, 2, 6)]));
    }

    #[test]
    fn parameters_without_a_size_are_named() {
        for (params, says) in [
            (".param .b7 a", "its parameter `a` cannot be laid out: its type is `.b7`"),
            (".param .b8 a[]", "`[]` is no size"),
            (".param .align 3 .b8 a[3]", "no power of two"),
            (".param .b64 a[99999999999]", "too large"),
            (".param .b64 a[99999999999999999999]", "is no size"),
            (".param .u32 a, .param .align 2147483648 .b8 b[3]", "too far"),
        ] {
            let error = layout_of(params).expect_err("it has no layout");
            assert!(error.contains(says), "{params}: {error}");
        }
    }
}
