package main

// The parts of Grafana's model of a dashboard that ours uses.

type dashboard struct {
	UID           string    `json:"uid"`
	Title         string    `json:"title"`
	Description   string    `json:"description"`
	Tags          []string  `json:"tags"`
	SchemaVersion int       `json:"schemaVersion"`
	Editable      bool      `json:"editable"`
	GraphTooltip  int       `json:"graphTooltip"`
	Refresh       string    `json:"refresh"`
	Time          timeRange `json:"time"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	Multi      bool        `json:"multi,omitempty"`
	IncludeAll bool        `json:"includeAll,omitempty"`
	AllValue   string      `json:"allValue,omitempty"`
	Refresh    int         `json:"refresh,omitempty"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Datasource  *datasource  `json:"datasource,omitempty"`
	GridPos     gridPos      `json:"gridPos"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Options     any          `json:"options,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	Collapsed   *bool        `json:"collapsed,omitempty"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit   string         `json:"unit"`
	Min    *float64       `json:"min,omitempty"`
	Custom map[string]any `json:"custom,omitempty"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Instant      bool       `json:"instant,omitempty"`
	Range        bool       `json:"range,omitempty"`
}

// prometheus is the data source that the reader of the dashboard chooses.
var prometheus = datasource{Type: "prometheus", UID: "${datasource}"}

// columns is how wide Grafana's grid is.
const columns = 24

// gatewayDashboard returns the dashboard with the panels of panels.go.
func gatewayDashboard() dashboard {
	d := dashboard{
		UID: "admission-gateway", Title: "Admission Gateway", Tags: []string{"admission-gateway"},
		Description:   "Requests, refusals, backends and memory of the Admission Gateway.",
		SchemaVersion: 39, Editable: true, GraphTooltip: 1, Refresh: "30s", Time: timeRange{"now-1h", "now"},
	}
	all := func(name, label, query string) variable {
		return variable{Name: name, Label: label, Type: "query", Query: query, Datasource: &prometheus, Multi: true,
			IncludeAll: true, AllValue: ".+", Refresh: 2}
	}
	d.Templating.List = []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"},
		all("job", "Job", "label_values(gateway_build_info, job)"),
		all("instance", "Instance", `label_values(gateway_build_info{job=~"$job"}, instance)`),
	}
	y := 0
	for _, r := range rows {
		d.Panels, y = r.place(d.Panels, y)
	}
	return d
}

// A row has a title and the panels below it.
type row struct {
	title  string
	height int
	width  int // of each of its panels
	graphs []graph
}

// place adds the row's panels from the line y on, and returns the line below them.
func (r row) place(panels []panel, y int) ([]panel, int) {
	open := false
	panels = append(panels, panel{ID: len(panels) + 1, Type: "row", Title: r.title,
		GridPos: gridPos{H: 1, W: columns, Y: y}, Collapsed: &open})
	y++
	x := 0
	for _, g := range r.graphs {
		if x+r.width > columns {
			x, y = 0, y+r.height
		}
		p := g.panel()
		p.ID, p.GridPos = len(panels)+1, gridPos{H: r.height, W: r.width, X: x, Y: y}
		panels = append(panels, p)
		x += r.width
	}
	return panels, y + r.height
}

// A graph is a panel with the course of some values, or with their last ones.
type graph struct {
	title, about string
	unit         string
	isNumber     bool // shows the last values as large numbers
	showsName    bool // the names of the last values in their place
	isStacked    bool
	queries      []query
}

type query struct{ expr, legend string }

func (g graph) panel() panel {
	p := panel{Type: "timeseries", Title: g.title, Description: g.about, Datasource: &prometheus}
	zero := 0.0
	p.FieldConfig = &fieldConfig{Defaults: fieldDefaults{Unit: g.unit, Min: &zero}, Overrides: []any{}}
	if g.isNumber {
		p.Type = "stat"
		text := "value"
		if g.showsName {
			text = "name"
		}
		p.Options = map[string]any{
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}}, "colorMode": "value",
			"graphMode": "none", "textMode": text,
		}
	} else {
		p.Options = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
		p.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 10, "showPoints": "never"}
		if g.isStacked {
			p.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 30, "showPoints": "never",
				"stacking": map[string]any{"mode": "normal"}}
		}
	}
	for i, q := range g.queries {
		p.Targets = append(p.Targets, target{RefID: string(rune('A' + i)), Datasource: prometheus,
			Expr: fill.Replace(q.expr), LegendFormat: q.legend, Instant: g.isNumber, Range: !g.isNumber})
	}
	return p
}
