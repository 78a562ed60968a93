/** The pages in the order of the navigation. Pages other than the task list are loaded on first use. */
import type { ComponentType } from "preact";

export interface Page {
  name: string;
  title: string;
  load: (segments: readonly string[]) => Promise<ComponentType<{ subject: string }>>;
}

export const PAGES: readonly Page[] = [
  { name: "overview", title: "Overview", load: async () => (await import("./pages/overview")).Overview },
  {
    name: "tasks",
    title: "Tasks",
    load: async ([id]) => (id ? (await import("./pages/task")).TaskPage : (await import("./pages/tasks")).Tasks),
  },
  { name: "dead-letters", title: "Dead letters", load: async () => (await import("./pages/dead_letters")).DeadLetters },
  {
    name: "schedules",
    title: "Schedules",
    load: async ([name]) =>
      name ? (await import("./pages/schedule")).SchedulePage : (await import("./pages/schedules")).Schedules,
  },
  {
    name: "calendars",
    title: "Calendars",
    load: async ([name]) =>
      name ? (await import("./pages/calendar")).CalendarDetail : (await import("./pages/calendars")).Calendars,
  },
  {
    name: "topologies",
    title: "Topologies",
    load: async ([id]) =>
      id ? (await import("./pages/topology")).TopologyPage : (await import("./pages/topologies")).Topologies,
  },
  {
    name: "definitions",
    title: "Definitions",
    load: async ([name]) =>
      name ? (await import("./pages/definition")).DefinitionDetail : (await import("./pages/definitions")).Definitions,
  },
  {
    name: "locks",
    title: "Locks",
    load: async ([key]) => (key ? (await import("./pages/lock")).LockDetail : (await import("./pages/locks")).Locks),
  },
  { name: "switches", title: "Switches", load: async () => (await import("./pages/switches")).Switches },
  {
    name: "bulk-operations",
    title: "Bulk operations",
    load: async ([id]) =>
      id
        ? (await import("./pages/bulk_operations")).BulkOperationPage
        : (await import("./pages/bulk_operations")).BulkOperations,
  },
  { name: "workers", title: "Workers", load: async () => (await import("./pages/workers")).Workers },
  { name: "settings", title: "Settings", load: async () => (await import("./pages/settings")).Settings },
];
