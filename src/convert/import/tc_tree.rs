// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of classful qdiscs in a text: what its server is, and its classes with what waits in them.

use super::netem::{Netem, Under};
use super::tc_class::Class;
use super::tc_command::{Left, filters, made};
use super::tc_filter::Filter;
use super::tc_handle::{canonical, major, of_qdisc};
use super::tc_limiter::is_in;
use super::tc_made::{Made, begins, in_one_place};
use super::tc_nested::{Nest, has_classes, nest, not_there, of_root};
use super::tc_prio::Bands;
use super::tc_quantum::{USUAL_R2Q, not_in_proportion, quantum, without_guarantees};
use super::tc_queue::{Queue, queue};
use super::tc_script::{below_another, is_netem};
use super::tc_shaper::Shaper;
use super::tc_units::whole;
use crate::bottleneck::Schedule;
use crate::convert::htb::{Promise, promised_twice};
use crate::text::{At, Mistake};

/// A server, its classes, and the filters that lead to them.
pub(super) struct Tree<'a> {
    /// bit/s; none: that of the device.
    pub rate: Option<u64>,
    pub schedule: Schedule,
    /// Queue of a server without classes.
    pub queue: Queue,
    pub queue_at: At,
    pub classes: Vec<Class>,
    /// Id of the class that takes packets without a filter.
    pub default: Option<String>,
    pub bands: Option<Bands>,
    /// Qdiscs below classes.
    pub nests: Vec<Nest<'a>>,
    pub filters: Vec<Filter<'a>>,
    /// Handle of its root, if it is an htb whose filters these are.
    pub htb: Option<String>,
    /// Ids of classes with filters.
    pub choosing: Vec<String>,
    /// Position of its root in the text.
    pub at: At,
    pub warnings: Vec<String>,
}

impl<'a> Tree<'a> {
    /// Reads the tree of a device, or of the only one; `None`: it is a link with a netem, which `tc_script` reads.
    pub fn read(text: &'a str, device: Option<&str>) -> Result<Option<Self>, Mistake> {
        let Left {
            made: mut all,
            gone,
        } = made(text)?;
        all.retain(|made| device.is_none_or(|device| made.device == Some(device)));
        let is_root = |made: &Made| !made.is_class && made.parent.is_none();
        let place = in_one_place(&mut all, is_root, "qdiscs")?;
        let roots: Vec<&Made> = all.iter().filter(|made| is_root(made)).collect();
        let Some(&(mut root)) = roots.first() else {
            let help = "write tc qdisc add dev eth0 root handle 1: htb ..., and its classes";
            let device = device.unwrap_or("a device");
            let title = format!("there is no qdisc at the root of {device}");
            return Err(Mistake::new(&At::START, title, help));
        };
        if let Some(second) = roots.iter().find(|other| other.device != root.device) {
            let first = root.device.unwrap_or("eth0");
            let help = format!("choose one with --dev {first}: a profile has one interface");
            let title = "the qdiscs of a second device";
            return Err(Mistake::new(&second.kind.at, title, help));
        }
        let is_below = |made: &Made| is_netem(made) && is_in(made, root);
        if is_netem(root) || (root.kind.value == "tbf" && all.iter().any(is_below)) {
            return Ok(None);
        }
        let mut tree = Self {
            rate: None,
            schedule: Schedule::Fifo,
            queue: Queue::default(),
            queue_at: root.kind.at.clone(),
            classes: Vec::new(),
            default: None,
            filters: Vec::new(),
            htb: None,
            choosing: Vec::new(),
            bands: None,
            nests: Vec::new(),
            at: root.kind.at.clone(),
            warnings: Vec::new(),
        };
        tree.filters = filters(text, device, &place, &gone, &mut tree.warnings)?;
        match root.kind.value {
            "htb" => tree.htb(&all, root)?,
            "prio" => tree.prio(root)?,
            "tbf" => tree.tbf(&all, root)?,
            other => {
                let Some(queue) = queue(&mut root.clone(), &mut tree.warnings)? else {
                    let title = format!("`{other}` at the root is not imported");
                    let help =
                        "a tree begins with htb, prio, tbf, netem, pfifo, bfifo, red, codel or pie";
                    return Err(Mistake::new(&root.kind.at, title, help));
                };
                tree.queue = queue;
            }
        }
        if let Some(bands) = tree.shaped_bands(&all, root) {
            root = bands;
            tree.htb = None;
            tree.prio(bands)?;
        }
        tree.nests = nest(&mut tree.classes, &mut tree.default, &all)?;
        for index in 0..tree.classes.len() {
            tree.leaf(text, &all, index)?;
        }
        let filters = std::mem::take(&mut tree.filters);
        tree.choosing = filters
            .iter()
            .filter_map(|f| f.parent.clone())
            .filter(|id| !id.ends_with(':'))
            .collect();
        tree.filters = of_root(
            filters,
            root,
            tree.bands.as_ref(),
            &tree.nests,
            &mut tree.warnings,
        )?;
        tree.promises();
        Ok(Some(tree))
    }

    /// Finds a prio below a tbf, or below the only class of an htb, for it has no rate: then it is the
    /// tree, with that rate.
    fn shaped_bands<'m>(&mut self, all: &'m [Made<'a>], root: &Made) -> Option<&'m Made<'a>> {
        let (rate, bands) = match (root.kind.value, &self.classes[..]) {
            ("tbf", _) => (self.rate, all.iter().find(|made| is_in(made, root))?),
            ("htb", [only]) if self.default.as_ref() == Some(&only.id) => {
                let is_below = |made: &&Made| only.holds(made);
                // As Shaper::most().
                let most = only.rate.max(self.rate);
                let rate = only.ceil.or(only.rate).into_iter().chain(most).min();
                (rate, all.iter().find(is_below)?)
            }
            _ => return None,
        };
        if bands.kind.value != "prio" {
            return None;
        }
        (self.rate, self.queue) = (rate, Queue::default());
        Some(bands)
    }

    /// Warns of guarantees beyond the rate above them: that of a class or, as in htb, of the device.
    fn promises(&mut self) {
        let promises: Vec<_> = (self.classes.iter())
            .map(|class| Promise {
                name: &class.id,
                parent: class.parent.as_deref(),
                rate: class.rate.unwrap_or(0),
                ceil: class.ceil.or(class.rate),
            })
            .collect();
        if self.schedule == Schedule::Htb {
            self.warnings.extend(promised_twice(self.rate, &promises));
        }
    }

    fn htb(&mut self, all: &[Made], root: &Made) -> Result<(), Mistake> {
        self.schedule = Schedule::Htb;
        let own = major(root.handle.as_deref().unwrap_or("1:"));
        self.htb = Some(format!("{own}:"));
        let (mut options, mut r2q) = (root.options.clone(), USUAL_R2Q);
        while let Some(word) = options.next() {
            if begins(word.value, "default") {
                let minor = options.argument("default", "10")?.value;
                self.default = Some(canonical(&format!("{own}:{minor}")));
            } else if begins(word.value, "r2q") {
                r2q = whole(&options.argument("r2q", "10")?, 0..=u32::MAX.into())? as u64;
            }
        }
        for class in all.iter().filter(|m| m.is_class && m.kind.value == "htb") {
            let parent = class.parent.as_deref().map(|id| of_qdisc(id, own));
            let mut read = htb_class(&mut class.clone(), r2q, &mut self.warnings)?;
            read.id = of_qdisc(class.handle.as_deref().unwrap_or(""), own);
            read.parent = parent.filter(|parent| !parent.ends_with(':'));
            if read.parent.is_none() {
                // No class lends to it, whatever its ceil (`htb_activate_prios`): at a rate of 500 and a ceil of
                // 2000 kbit/s, Linux 7.2 sent 504 kbit/s, also of a class below it with that ceil.
                read.ceil = read.rate.or(read.ceil);
            }
            self.classes.push(read);
        }
        // A class above all others is the wire itself.
        let mut tops = self.classes.iter().filter(|class| class.parent.is_none());
        if let (Some(top), None) = (tops.next(), tops.next())
            && self
                .classes
                .iter()
                .any(|c| c.parent.as_ref() == Some(&top.id))
        {
            let top = top.id.clone();
            self.rate = (self.classes.iter().find(|c| c.id == top)).and_then(|c| c.ceil);
            self.classes.retain(|class| class.id != top);
            for class in &mut self.classes {
                class.parent.take_if(|parent| *parent == top);
            }
        }
        let parents: Vec<_> = self
            .classes
            .iter()
            .map(|class| class.parent.clone())
            .collect();
        for class in &mut self.classes {
            // htb has no priority of a class above others.
            class
                .priority
                .take_if(|_| parents.contains(&Some(class.id.clone())));
        }
        if let Some(schedule) = without_guarantees(&mut self.classes, self.rate) {
            self.schedule = schedule;
        }
        self.warnings.extend(not_in_proportion(&self.classes));
        Ok(())
    }

    fn prio(&mut self, root: &Made) -> Result<(), Mistake> {
        self.schedule = Schedule::Priority;
        let bands = Bands::read(root)?;
        let class = |(band, id): (u32, &String)| Class {
            at: root.kind.at.clone(),
            id: id.clone(),
            priority: Some(band),
            ..Class::default()
        };
        self.classes = (0..).zip(&bands.ids).map(class).collect();
        self.default = Some(bands.default.clone());
        self.bands = Some(bands);
        Ok(())
    }

    /// Reads a token bucket with at most one queue below it.
    fn tbf(&mut self, all: &[Made], root: &Made) -> Result<(), Mistake> {
        (self.rate, self.queue) = tbf(&mut root.clone(), &mut self.warnings)?;
        let below = all.iter().find(|made| !made.is_class && is_in(made, root));
        if let Some(below) = below {
            let mut below = below.clone();
            self.queue_at = below.kind.at.clone();
            match queue(&mut below, &mut self.warnings)? {
                Some(queue) => self.queue = queue,
                None if below.kind.value == "prio" => {}
                None if has_classes(below.kind.value) => {
                    return Err(not_there(&below, "below tbf"));
                }
                None => {
                    let kind = below.kind.value;
                    let text =
                        format!("`{kind}` below tbf: this queue has the limit of the tbf instead");
                    self.warnings.push(text);
                }
            }
        }
        Ok(())
    }

    /// Reads the qdiscs below a class: a tbf, a netem, a queue, one below the other.
    fn leaf(&mut self, text: &str, all: &[Made], index: usize) -> Result<(), Mistake> {
        let id = self.classes[index].id.clone();
        let mut next = all.iter().find(|made| self.classes[index].holds(made));
        if self.nests.iter().any(|nest| nest.class == id) {
            return Ok(());
        }
        let is_inner = self.classes.iter().any(|c| c.parent.as_ref() == Some(&id));
        if let (true, Some(qdisc)) = (is_inner, next) {
            // htb_change_class() removes the queue of a class that gets one below it.
            let kind = qdisc.kind.value;
            self.warnings.push(format!(
                "`{kind}` in class {id}, which has classes below it: no packet waits there"
            ));
            return Ok(());
        }
        let mut depth = 0;
        let mut lowest_is_netem = false;
        while let Some(qdisc) = next.filter(|_| depth < 4) {
            depth += 1;
            let mut qdisc = qdisc.clone();
            let handle = qdisc
                .handle
                .as_deref()
                .map(|handle| major(handle).to_owned());
            let below = |made: &&Made| {
                made.parent.as_deref().map(major) == handle.as_deref() && handle.is_some()
            };
            next = all.iter().filter(|made| !made.is_class).find(below);
            let class = &mut self.classes[index];
            class.queue_at = qdisc.kind.at.clone();
            lowest_is_netem = qdisc.kind.value == "netem";
            match qdisc.kind.value {
                "netem" => {
                    if class.netem.is_some() {
                        return Err(below_another(&qdisc));
                    }
                    // It replaces the queue of a tbf.
                    class.queue = Queue::default();
                    class.netem = Some(Netem::parse(text, &mut qdisc, Under::Nothing, None)?);
                }
                "tbf" => {
                    let (rate, queue) = tbf(&mut qdisc, &mut self.warnings)?;
                    class.queue = queue;
                    if let Some(rate) = rate {
                        // A class of htb without a ceil has its rate as one.
                        let ceil = class.ceil.or(class.rate).unwrap_or(rate);
                        class.ceil = Some(ceil.min(rate));
                        class.rate = class.rate.map(|own| own.min(rate));
                    }
                }
                other => match queue(&mut qdisc, &mut self.warnings)? {
                    Some(queue) => class.queue = queue,
                    None if has_classes(other) => {
                        return Err(not_there(&qdisc, &format!("in class {id}")));
                    }
                    None => self.warnings.push(format!(
                        "`{other}` in class {id}: this queue has 1000 packets instead"
                    )),
                },
            }
        }
        if lowest_is_netem {
            self.classes[index].waits_in_netem();
        }
        Ok(())
    }
}

fn htb_class(made: &mut Made, r2q: u64, warnings: &mut Vec<String>) -> Result<Class, Mistake> {
    // A burst makes room for a timer, which emud has not.
    let shaper = Shaper::read(made)?.unwrap_or_default();
    warnings.extend(shaper.wire());
    let mut class = Class {
        at: made.kind.at.clone(),
        queue_at: made.kind.at.clone(),
        rate: whole_bits(shaper.rate),
        ceil: whole_bits(shaper.ceil),
        priority: shaper.priority,
        quantum: quantum(&shaper, r2q),
        ..Class::default()
    };
    if let (Some(rate), Some(ceil)) = (class.rate, class.ceil)
        && ceil < rate
    {
        // htb checks the ceiling first.
        warnings.push(format!(
            "a rate of {rate} bit/s above its ceil of {ceil} bit/s"
        ));
        class.rate = Some(ceil);
    }
    Ok(class)
}

fn tbf(made: &mut Made, warnings: &mut Vec<String>) -> Result<(Option<u64>, Queue), Mistake> {
    let shaper = Shaper::read(made)?.unwrap_or_default();
    warnings.extend(shaper.wire());
    let queue = Queue {
        bytes: shaper.limit,
        ..Queue::default()
    };
    Ok((whole_bits(shaper.rate), queue))
}

fn whole_bits(rate: Option<f64>) -> Option<u64> {
    rate.map(|bits| bits.round() as u64)
}
