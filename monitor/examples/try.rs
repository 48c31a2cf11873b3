use emud_monitor::*;
fn main() {
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let mut c = Config::default();
        let secs: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
        if let Some(g) = std::env::args().nth(2) { c.alarms.group_by = match g.as_str() {"cgroup"=>config::GroupBy::Cgroup,"command"=>config::GroupBy::Command,_=>config::GroupBy::Netns}; }
        c.alarms.limit = 10;
        let mut m = match Monitor::start(&c) { Ok(m) => m, Err(e) => { eprintln!("{e} {e:?}"); std::process::exit(1) } };
        for h in m.hooks() { println!("{h:?}"); }
        println!("empty {}", m.empty_probe_ns());
        let end = tokio::time::Instant::now() + std::time::Duration::from_secs(secs);
        loop { tokio::select! { e = m.next() => println!("{:?}", e.unwrap()), _ = tokio::time::sleep_until(end) => break } }
        println!("{:?}", m.dropped());
        for c in m.costs().unwrap() { println!("{} {} {} {:.1}", c.program, c.hook, c.events, c.run_time_ns as f64 / c.events.max(1) as f64); }
    });
}
