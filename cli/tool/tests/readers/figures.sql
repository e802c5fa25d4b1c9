-- Each figure of `docs/reference/answers.md` from the rows that `decode` prints, event by event and lane by lane.
-- Tables that are there before: `rows` (the CSV of `decode`), `runs` and `ran` (the Parquet export's runs and launches),
-- `launches` and `points` (of `info`).

-- A warp, the lanes that it has, and whether all of its events are there.
create table warps as
select row_number() over (order by launch, block_z, block_y, block_x, warp)::int as id, *
from (
    select r.launch, any_value(r.kernel) as kernel, r.block_x, r.block_y, r.block_z, r.warp,
        ((r.block_z * any_value(l.grid_y) + r.block_y) * any_value(l.grid_x) + r.block_x)
            * any_value((l.threads + 31) // 32) + r.warp as number,
        (1::bigint << least(32, any_value(l.threads) - 32 * r.warp)) - 1 as all_lanes,
        bool_and(r.location > 0) as is_whole,
        bool_or(r.name = '[unfinished]' and r.location = 0) as is_unfinished,
        sum(r.lost)::bigint as lost
    from rows r join launches l using (launch)
    group by r.launch, r.block_x, r.block_y, r.block_z, r.warp
);

create table events as
select w.id as warp, w.kernel, w.all_lanes, w.is_whole, r.event as number, r.location, r.mask,
    bit_count(r.mask) as lanes, coalesce(p.weight, 1) * bit_count(w.all_lanes & ~r.mask) as idle,
    coalesce(p.weight, 1) * bit_count(w.all_lanes | r.mask) as slots
from rows r join warps w using (launch, block_x, block_y, block_z, warp) left join points p on p.id = r.location
where r.location > 0;

-- What each lane did, one row a step: `next` is the number of its next event.
create table steps as
select warp, lane, e.number, location, is_whole,
    row_number() over lane as step,
    lag(e.number) over lane as previous, lag(location) over lane as previous_location,
    lead(e.number) over lane as next, lead(location) over lane as next_location
from events e, range(32) as lanes(lane)
where (mask >> lane) & 1 = 1
window lane as (partition by warp, lane order by e.number);

-- Pairs of events between which lanes went straight, with the beginning and, where it is known, the end.
create table pairs as
select warp, number as from_event, next as to_event, location as "from", next_location as "to", count(*) as lanes
from steps where next is not null or is_whole group by all
union all
select warp, null, number, null, location, count(*) from steps where previous is null group by all;

create table edges as
select "from", "to", count(*) as visits, sum(lanes)::bigint as lanes from pairs group by all;

create table splits as
select location, count(*) filter (ways > 1) as splits
from (
    select warp, number, location, count(distinct coalesce(next_location, 0)) as ways
    from steps where next is not null or is_whole group by all
)
group by location;

create table cut as
select location, count(*) as cut_lanes from steps where next is null and not is_whole group by location;

-- The stack of loops of each lane, step by step.
create table trips as
with recursive walk as (
    select warp, lane, step, [{'location': location, 'trips': 1}] as stack,
        []::struct(location int, trips int)[] as over
    from steps where step = 1
    union all
    select warp, lane, step,
        case when height is null then list_append(stack, {'location': location, 'trips': 1})
            else list_append(stack[1:height - 1], {'location': location, 'trips': stack[height].trips + 1}) end,
        case when height is null then [] else stack[height + 1:] end
    from (
        select s.warp, s.lane, s.step, s.location, w.stack,
            list_position(list_transform(w.stack, lambda entry: entry.location), s.location) as height
        from walk w join steps s on s.warp = w.warp and s.lane = w.lane and s.step = w.step + 1
    )
)
select entry.location, entry.trips
from (
    select unnest(over) as entry from walk
    union all
    select unnest(stack) from (
        select stack from walk qualify row_number() over (partition by warp, lane order by step desc) = 1
    )
);

create table warp_visits as select warp, location, count(*) as visits from events group by all;

create macro spread(numbers) as {
    'count': len(numbers),
    'sum': list_sum(numbers)::bigint,
    'min': list_min(numbers),
    'max': list_max(numbers),
    'median': list_aggregate(numbers, 'quantile_disc', 0.5),
    'p95': list_aggregate(numbers, 'quantile_disc', 0.95),
    'mean': list_avg(numbers),
    'imbalance': list_max(numbers) / list_avg(numbers),
    'powers_of_two': [
        len(list_filter(numbers, lambda n: if(n = 0, 0, length(bin(n))) = bits)) for bits in range(65)
    ]
};

create macro histogram_of(lanes) as [len(list_filter(lanes, lambda n: n = many)) for many in range(33)];

create table locations as
select location, count(*) as visits, sum(lanes)::bigint as lanes, sum(idle)::bigint as idle, sum(slots)::bigint as slots,
    count(distinct warp) as warps, histogram_of(list(lanes)) as active,
    any_value(coalesce(splits.splits, 0)) as splits, any_value(coalesce(cut.cut_lanes, 0)) as cut_lanes,
    (select spread(list(t.trips)) from trips t where t.location = events.location) as trips,
    (select spread(list(v.visits)) from warp_visits v where v.location = events.location) as warp_visits
from events left join splits using (location) left join cut using (location)
group by location order by location;

create table lines as
select p.file, p.line, list_sort(list(distinct e.location)) as locations, count(*) as visits,
    sum(lanes)::bigint as lanes, sum(idle)::bigint as idle, sum(slots)::bigint as slots, count(distinct warp) as warps,
    histogram_of(list(lanes)) as active,
    (select coalesce(sum(s.splits), 0)::bigint from splits s join points q on q.id = s.location
        where q.file = p.file and q.line = p.line) as splits
from events e join points p on p.id = e.location
group by p.file, p.line order by p.file, p.line;

create table kernels as
select kernel, count(*) as visits, sum(lanes)::bigint as lanes, sum(idle)::bigint as idle, sum(slots)::bigint as slots,
    count(distinct warp) as warps, histogram_of(list(lanes)) as active,
    (select spread(list(of_warp.visits)) from (
        select sum(v.visits)::bigint as visits from warp_visits v join warps w on w.id = v.warp
        where w.kernel = events.kernel group by v.warp
    ) of_warp) as warp_events
from events group by kernel order by kernel;

-- The digest of a warp's path, as `docs/reference/answers.md` defines it.
create table paths_of_warps as
select w.launch, w.number as warp, w.kernel, count(*) as visits, sum(lanes)::bigint as lanes,
    sum(idle)::bigint as idle, sum(slots)::bigint as slots, arg_max(e.location, e.number) as last,
    quantile_disc(count(*), 0.5) over (partition by w.launch) as median,
    case when w.is_unfinished then 'unfinished' when w.is_whole then 'whole' else 'lossy' end as "end",
    list_reduce(
        list(location::hugeint * 4294967296 + mask order by e.number),
        lambda digest, event: (digest * 818200396385340970 + event) % 2305843009213693951
    )::varchar as path
from events e join warps w on w.id = e.warp
group by w.id, w.launch, w.number, w.kernel, w.is_unfinished, w.is_whole order by launch, w.number;

create table paths as
select path, count(*) as warps, any_value(visits) as visits, any_value(lanes) as lanes, any_value(idle) as idle, any_value(slots) as slots
from paths_of_warps group by kernel, path;

-- Runs with their time, which is null where the trace does not know it.
create table timed as
select w.id as warp, w.kernel, w.launch, w.number as warp_number, r.sm, r.event, r.location, r.mask::bigint as mask,
    r.count::bigint as visits, r.t_begin::bigint as t_begin, r.t_end::bigint - r.t_begin::bigint as cycles,
    bit_count(r.mask::bigint) as active, bit_count(w.all_lanes & ~r.mask::bigint) as idle
from runs r join warps w using (launch, block_x, block_y, block_z, warp);

-- A sum of cycles: 0 of none, but null if the trace has no times.
create macro known(cycles) as coalesce(cycles, if((select count(t_begin) from timed) > 0, 0, null))::bigint;

-- Time of kernels by location: of lanes up to the lane's next run, of warps up to the warp's next run.
create table times as
select *
from (
    select kernel, location, known(sum(cycles)) as warp_cycles, known(sum(cycles * active)) as active_lane_cycles,
        known(sum(cycles * idle)) as idle_lane_cycles,
        known(sum(visits) filter (cycles is not null)) as timed_visits
    from timed group by all
) join (
    select kernel, location, known(sum(lane_cycles)) as lane_cycles
    from (
        select kernel, location, lead(t_begin) over (partition by warp, lane order by event) - t_begin as lane_cycles
        from timed, range(32) as lanes(lane) where (mask >> lane) & 1 = 1
    )
    group by all
) using (kernel, location);

create table location_times as
select location, sum(columns('.*cycles|timed_visits'))::bigint from times group by location;

create table line_times as
select file, line, sum(columns('.*cycles|timed_visits'))::bigint
from times join points on id = location group by file, line;

create table kernel_times as
select kernel, sum(columns('.*cycles|timed_visits'))::bigint from times group by kernel;

create table warp_times as
select launch, warp_number as warp, any_value(sm) as sm, known(max(t_begin) - min(t_begin)) as cycles,
    quantile_disc(known(max(t_begin) - min(t_begin)), 0.5) over (partition by launch) as median_cycles
from timed group by launch, warp_number;

-- Cycles of each visit: those of a run are spread over its visits evenly, in whole cycles.
create table visit_times as
select location, spread(list(each)) as visit_cycles
from (
    select location, unnest([cycles // visits + (visit < cycles % visits)::bigint for visit in range(visits)]) as each
    from timed where cycles is not null
)
group by location;

-- Locations that lanes can go round in, by what the outermost loops are, with their lane-cycles.
create table loop_times as
with recursive steps_of as (
    select distinct w.kernel, p."from", p."to" from pairs p join warps w on w.id = p.warp 
    where p."from" is not null and p."to" is not null
), ways as (
    select * from steps_of
    union
    select w.kernel, w."from", s."to" from ways w join steps_of s on s.kernel = w.kernel and s."from" = w."to"
), rounds as (
    select a.kernel, a."from" as location, min(a."to") as round
    from ways a join ways b on a.kernel = b.kernel and a."from" = b."to" and a."to" = b."from" group by all
)
select kernel, list_sort(list(location)) as locations, sum(lane_cycles)::bigint as lane_cycles
from rounds join times using (kernel, location) group by kernel, round;

-- Blocks, where the trace says where and when they ran, with their waves: how many of them followed each other there.
create table blocks as
with recursive block as (
    select distinct r.launch, (r.block_z::int * l.grid_y + r.block_y::int) * l.grid_x + r.block_x::int as block, r.sm,
        r.block_begin_ns::bigint as begins, r.block_end_ns::bigint as ends
    from runs r join launches l using (launch) where r.sm is not null
), chains as (
    select launch, block, 1 as length from block
    union
    select b.launch, b.block, c.length + 1
    from chains c join block a using (launch, block) join block b on b.launch = a.launch and b.sm = a.sm
        and a.ends <= b.begins and (a.begins, a.block) < (b.begins, b.block)
), waves as (
    select launch, block, max(length) as wave from chains group by all
)
select b.*, w.wave,
    greatest(0, ends - greatest(begins, coalesce(max(ends) over (
        partition by launch, sm order by begins, block rows between unbounded preceding and 1 preceding), 0))) as busy,
    struct_pack(block := block, sm := sm, wave := wave, begin_nanoseconds := begins, nanoseconds := ends - begins) as ran
from block b join waves w using (launch, block);

create table schedule as
with sms as (
    select launch, sm, sum(busy)::bigint as busy, max(ends) as until from blocks group by all
), length as (
    select launch, begin_ns::bigint as begins, end_ns::bigint as ends,
        max(end_ns::bigint) over (order by begin_ns, launch rows between unbounded preceding and 1 preceding) as until
    from ran where begin_ns is not null
)
select l.launch, l.begins::varchar as "begin", l.ends - l.begins as nanoseconds,
    greatest(0, l.begins - l.until) as gap_nanoseconds, if(l.until is null, 0, greatest(0, least(l.until, l.ends) - l.begins)) as overlap_nanoseconds,
    count(*) as blocks, quantile_disc(b.ends - b.begins, 0.5) as median_block_nanoseconds, max(wave) as waves,
    count(distinct b.sm) as sms, sum(b.busy)::bigint as busy_nanoseconds,
    (select max(s.busy) from sms s where s.launch = l.launch) as most_busy_nanoseconds,
    (select sum(l.ends - l.begins - s.until)::bigint from sms s where s.launch = l.launch) as waiting_nanoseconds,
    arg_max(b.ran, (b.ends - b.begins, -b.block)) as longest, arg_max(b.ran, (b.ends, -b.block)) as last
from length l join blocks b using (launch) group by all;
