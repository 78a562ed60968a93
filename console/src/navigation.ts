/** The pages in groups, in the navigation's order. Pages other than the task list are loaded on first use. */
import type { ComponentType } from "preact";

export interface Page {
  name: string;
  title: string;
  /** Pages for single objects, which are in no navigation group, are "Detail". */
  group: "" | "Work" | "Control" | "System" | "Detail";
  /** The target of the page's navigation entry, if it is not the page itself. */
  entry?: string;
  load: (segments: readonly string[]) => Promise<ComponentType<{ subject: string }>>;
}

export const PAGES: readonly Page[] = [
  { name: "overview", title: "Overview", group: "", load: async () => (await import("./pages/overview")).Overview },
  {
    name: "tasks",
    title: "Tasks",
    group: "Work",
    entry: "now",
    load: async ([id]) => {
      if (id === "now") return (await import("./pages/now")).Now;
      if (id === "compare") return (await import("./pages/compare")).Compare;
      return id ? (await import("./pages/task")).TaskPage : (await import("./pages/tasks")).Tasks;
    },
  },
  {
    name: "schedules",
    title: "Schedules",
    group: "Work",
    load: async ([name]) =>
      name ? (await import("./pages/schedule")).SchedulePage : (await import("./pages/schedules")).Schedules,
  },
  {
    name: "calendars",
    title: "Calendars",
    group: "Work",
    load: async ([name]) =>
      name ? (await import("./pages/calendar")).CalendarDetail : (await import("./pages/calendars")).Calendars,
  },
  {
    name: "topologies",
    title: "Topologies",
    group: "Work",
    load: async ([id]) =>
      id ? (await import("./pages/topology")).TopologyPage : (await import("./pages/topologies")).Topologies,
  },
  {
    name: "definitions",
    title: "Definitions",
    group: "Work",
    load: async ([name]) =>
      name ? (await import("./pages/definition")).DefinitionDetail : (await import("./pages/definitions")).Definitions,
  },
  {
    name: "groups",
    title: "Groups",
    group: "Work",
    load: async ([id]) => (id ? (await import("./pages/group")).GroupDetail : (await import("./pages/groups")).Groups),
  },
  { name: "dead-letters", title: "Dead letters", group: "Control", load: async () => (await import("./pages/dead_letters")).DeadLetters },
  {
    name: "limits",
    title: "Limits",
    group: "Control",
    load: async () => (await import("./pages/limits")).Limits,
  },
  { name: "switches", title: "Switches and rates", group: "Control", load: async () => (await import("./pages/switches")).Switches },
  {
    name: "bulk-operations",
    title: "Bulk operations",
    group: "Control",
    load: async ([id]) =>
      id
        ? (await import("./pages/bulk_operations")).BulkOperationPage
        : (await import("./pages/bulk_operations")).BulkOperations,
  },
  { name: "workers", title: "Workers", group: "System", load: async () => (await import("./pages/workers")).Workers },
  { name: "settings", title: "Settings", group: "System", load: async () => (await import("./pages/settings")).Settings },
  {
    name: "locks",
    title: "Locks",
    group: "Detail",
    load: async ([key]) => (key ? (await import("./pages/lock")).LockDetail : (await import("./pages/limits")).Limits),
  },
  {
    name: "rates",
    title: "Rates",
    group: "Detail",
    load: async ([key]) => (key ? (await import("./pages/rate")).RateDetail : (await import("./pages/limits")).Limits),
  },
];

export const GROUPS = ["", "Work", "Control", "System"] as const;
