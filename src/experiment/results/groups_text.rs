// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison of several groups for people.

use std::fmt::Write;

use emud_monitor::log::printable;

use super::compare_text::{NOTABLE, change, configuration, ending, p_text, runs};
use super::{Estimate, Grouped, Groups, VerdictMark};
use crate::text::columns;

impl Groups {
    /// Verdicts, different settings, figures side by side, pairs that differ; ends with a line feed.
    pub fn text(&self, mark: VerdictMark) -> String {
        let mut out = String::new();
        for group in &self.groups {
            runs(&mut out, &group.name, &group.runs, mark);
        }
        for group in self.groups.iter().skip(1) {
            let of = format!(" of {}", group.name);
            configuration(&mut out, ["a", &group.name], &of, &group.differences);
        }
        self.figures(&mut out);
        ending(&mut out, &self.losses, &self.notes, self.clean);
        out
    }

    fn figures(&self, out: &mut String) {
        if self.figures.is_empty() {
            out.push_str("no figures: no run has samples of a measured phase\n");
            return;
        }
        let names = self.groups.iter().map(|group| group.name.clone());
        let head = [String::new()].into_iter().chain(names).collect();
        let counted: Vec<usize> = self.groups.iter().map(|group| group.counted).collect();
        let rows = self.figures.iter().map(|figure| figure.cells(&counted));
        *out += &columns(std::iter::once::<Vec<String>>(head).chain(rows));
        let tested = self.figures.iter().filter_map(|f| f.bonferroni);
        let (all, differ) = tested.fold((0, 0), |(all, differ), p| {
            (all + 1, differ + usize::from(p < NOTABLE))
        });
        if all == 0 {
            return;
        }
        let percent = self.confidence * 100.0;
        let _ = writeln!(
            out,
            "±: {percent} % confidence interval of a mean (Student's t); F, p: one-way analysis of variance, \
             each row alone; with Bonferroni's correction for {all} rows {differ} differ"
        );
        let pairs: Vec<_> = self.figures.iter().flat_map(Grouped::pairs).collect();
        if pairs.is_empty() {
            return;
        }
        out.push_str(
            "pairs of the rows that differ (t with the variance within all groups, p with Bonferroni's \
             correction for the pairs of a row):\n",
        );
        *out += &columns(pairs);
    }
}

impl Grouped {
    /// Returns name, the mean of each group, F and p.
    fn cells(&self, counted: &[usize]) -> Vec<String> {
        let quantity = self.name.quantity;
        let mean = |(e, runs): (&Option<Estimate>, &usize)| {
            e.map_or("-".to_owned(), |e| e.text_of(quantity, *runs))
        };
        let mut cells = vec![printable(&self.name.text()).into_owned()];
        cells.extend(self.groups.iter().zip(counted).map(mean));
        if let Some(anova) = &self.anova {
            let (between, within) = (anova.between, anova.within);
            let f = anova.f.map(|f| format!("F({between}, {within}) = {f:.2}"));
            cells.push(f.unwrap_or_default());
            cells.push(p_text(anova.p));
        }
        cells
    }

    /// Returns each pair with its difference, if there is a difference between the groups.
    fn pairs(&self) -> Vec<[String; 4]> {
        let anova = self.anova.iter().filter(|anova| anova.p < NOTABLE);
        let pair = |pair: &super::Pairwise| {
            [
                format!("  {}", printable(&self.name.text())),
                format!("{} - {}", pair.b, pair.a),
                change(self.name.quantity, pair.difference),
                p_text(pair.bonferroni),
            ]
        };
        anova
            .flat_map(|anova| anova.pairs.iter().map(pair))
            .collect()
    }
}
