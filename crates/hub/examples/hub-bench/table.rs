//! The table of the results.

/// Rows, and whether all targets are met.
pub(crate) struct Table {
    all_met: bool,
}

impl Table {
    pub(crate) fn new() -> Table {
        println!("| scenario | figure | value | target | met |\n|---|---|---:|---|---|");
        Table { all_met: true }
    }

    /// A figure without a target.
    pub(crate) fn row(&self, scenario: &str, figure: &str, value: &str) {
        println!("| {scenario} | {figure} | {value} |  |  |");
    }

    pub(crate) fn target(&mut self, scenario: &str, figure: &str, value: &str, target: &str, is_met: bool) {
        self.all_met &= is_met;
        let met = if is_met { "yes" } else { "**no**" };
        println!("| {scenario} | {figure} | {value} | {target} | {met} |");
    }

    pub(crate) fn is_met(&self) -> bool {
        self.all_met
    }
}
