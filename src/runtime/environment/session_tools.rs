//! The tools of one session: the tools of the process, and extra tools, for example of MCP servers.

use std::sync::Arc;

use parking_lot::Mutex;

use super::tool_offer::ToolOffer;
use crate::toolkit::{AnyTool, tool_list};
use crate::tools::Tools;

/// The table of tools of one session.
///
/// The list of tools is part of the prefix of each model request, which providers cache. Thus it
/// changes only through `set_extra` and `set_subset`, between turns, and tools that are kept do not
/// change their positions: the process-wide tools come first, sorted by name, then the extra tools
/// in the order in which they were added, each group of new ones sorted by name.
pub(crate) struct SessionTools {
    native: Tools,
    /// The tools that the session may use, see [`tool_list`]; `None`: all.
    only: Option<Vec<String>>,
    current: Mutex<Current>,
}

#[derive(Clone)]
struct Current {
    extra: Vec<Arc<dyn AnyTool>>,
    /// See [`Tools::with_tools`].
    unlisted: Vec<Arc<dyn AnyTool>>,
    /// Names and globs of the tools in the table.
    subset: Option<Vec<String>>,
    offer: ToolOffer,
    table: Arc<Tools>,
}

impl SessionTools {
    /// Creates a table of the process-wide tools; with `only`, a table of those that it allows.
    pub(crate) fn new(native: &Tools, only: Option<Vec<String>>) -> SessionTools {
        let native = only.as_deref().map_or_else(|| native.clone(), |only| native.only(only));
        let table = Arc::new(native.clone());
        let current = Current { extra: Vec::new(), unlisted: Vec::new(), subset: None, offer: ToolOffer::All, table };
        SessionTools { native, only, current: Mutex::new(current) }
    }

    /// Creates a table with the same tools as this one.
    pub(crate) fn copy(&self) -> SessionTools {
        let current = self.current.lock().clone();
        SessionTools { native: self.native.clone(), only: self.only.clone(), current: Mutex::new(current) }
    }

    /// Returns the tools in effect now.
    pub(crate) fn table(&self) -> Arc<Tools> {
        self.current.lock().table.clone()
    }

    /// Returns whether the table has the process-wide tools only.
    pub(crate) fn has_no_extra(&self) -> bool {
        self.current.lock().extra.is_empty()
    }

    /// Returns whether the session may use a tool with this name.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| tool_list::allows(only, name))
    }

    /// Replaces the extra tools, which the session may use, and the unlisted ones. Must only be
    /// called between turns. A tool whose name is in the table already takes the position of the
    /// previous one; new tools follow, sorted by name.
    pub(crate) fn set_extra(&self, tools: Vec<Arc<dyn AnyTool>>, unlisted: Vec<Arc<dyn AnyTool>>) {
        let mut current = self.current.lock();
        let position = |tool: &Arc<dyn AnyTool>| current.extra.iter().position(|known| known.name() == tool.name());
        let mut placed: Vec<_> = tools.into_iter().map(|tool| (position(&tool).unwrap_or(usize::MAX), tool)).collect();
        placed.sort_by(|(at, one), (other_at, other)| (at, one.name()).cmp(&(other_at, other.name())));
        let extra: Vec<_> = placed.into_iter().map(|(_, tool)| tool).collect();
        let (subset, offer) = (current.subset.take(), current.offer);
        *current = self.current(extra, unlisted, subset, offer);
    }

    /// Restricts the table to the tools that match `subset`; `None` stands for all tools. Of these,
    /// models are offered those of `offer` and the extra ones. Must only change between turns.
    pub(crate) fn set_subset(&self, subset: Option<Vec<String>>, offer: ToolOffer) {
        let mut current = self.current.lock();
        if current.subset != subset || current.offer != offer {
            let Current { extra, unlisted, .. } = current.clone();
            *current = self.current(extra, unlisted, subset, offer);
        }
    }

    fn current(
        &self,
        extra: Vec<Arc<dyn AnyTool>>,
        unlisted: Vec<Arc<dyn AnyTool>>,
        subset: Option<Vec<String>>,
        offer: ToolOffer,
    ) -> Current {
        let all = self.native.with_tools(&extra, &unlisted);
        let chosen = subset.as_ref().map_or_else(|| all.clone(), |subset| all.matching(subset));
        let is_extra = |name: &str| extra.iter().any(|tool| tool.name() == name);
        let table = Arc::new(chosen.offering(|name| is_extra(name) || offer.has(name)));
        Current { extra, unlisted, subset, offer, table }
    }
}
