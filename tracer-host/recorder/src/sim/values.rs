use warptrace_device::KernelModule;
use warptrace_format::data::MAX_SITE;
use warptrace_format::file::SiteInfo;
use warptrace_sim::ValueSites;

use crate::{DeviceError, value_info};

#[derive(Debug, Default)]
pub(super) struct Values {
    /// Each module with the first site number of its first value.
    modules: Vec<(KernelModule, usize)>,
}

impl Values {
    pub(super) fn add(&mut self, module: &KernelModule) {
        let is_known = self.modules.iter().any(|(known, _)| known.name == module.name);
        if !module.values.is_empty() && !is_known {
            self.modules.push((*module, self.next()));
        }
    }

    /// Checks that site numbers suffice for all modules.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        if self.next() <= usize::from(MAX_SITE) + 1 {
            return Ok(());
        }
        let count: usize = self.modules.iter().map(|(module, _)| module.values.len()).sum();
        let most = usize::from(MAX_SITE) / usize::from(ValueSites::EACH);
        Err(DeviceError::Unsupported {
            problem: format!(
                "the kernels name {count} values, and a trace of the simulator has at most {most}: name fewer, or record \
                 without `values`"
            ),
        })
    }

    fn next(&self) -> usize {
        let end = |(module, first): &(KernelModule, usize)| {
            first + usize::from(ValueSites::EACH) * module.values.len()
        };
        self.modules.last().map_or(1, end)
    }

    /// Returns the sites for a launch of a kernel of module `own`, whose values take precedence.
    pub(super) fn of_launch(&self, own: Option<&KernelModule>) -> ValueSites {
        let is_own = |module: &KernelModule| own.is_some_and(|own| own.name == module.name);
        let mut modules: Vec<&(KernelModule, usize)> = self.modules.iter().collect();
        modules.sort_by_key(|(module, _)| is_own(module));
        let numbered = modules.into_iter().flat_map(|(module, first)| {
            let each = usize::from(ValueSites::EACH);
            let sites = (*first..).step_by(each).map_while(|site| u16::try_from(site).ok());
            module.values.iter().map(|value| value.id).zip(sites)
        });
        ValueSites::new(numbered)
    }

    pub(super) fn describe(&self, sites: &ValueSites, to: &mut Vec<SiteInfo>) {
        for (id, of, number) in sites.used() {
            let module = self.modules.iter().rfind(|(_, first)| *first <= usize::from(number));
            let value = module.and_then(|(module, _)| module.values.iter().find(|value| value.id == id));
            if let (Some((module, _)), Some(value)) = (module, value) {
                to.push(value_info(number, of, value, module.file));
            }
        }
    }
}
