import java.io.File;
import java.nio.charset.StandardCharsets;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXPopulationModel;
import org.deidentifier.arx.ARXPopulationModel.Region;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/** Full-domain k-anonymity by ARX: arguments are the table, the folder of hierarchies, the output. */
public class Arx {
    public static void main(String[] args) throws Exception {
        Data data = Data.create(args[0], StandardCharsets.UTF_8, ',');
        DataHandle input = data.getHandle();
        for (int i = 0; i < input.getNumColumns(); i++) {
            String name = input.getAttributeName(i);
            File file = new File(args[1], name + ".csv");
            data.getDefinition().setAttributeType(
                name, Hierarchy.create(file, StandardCharsets.UTF_8, ';'));
        }
        ARXConfiguration config = ARXConfiguration.create();
        config.addPrivacyModel(new KAnonymity(5));
        config.setSuppressionLimit(0.02d);
        config.setQualityModel(Metric.createLossMetric(AggregateFunction.GEOMETRIC_MEAN));
        ARXResult result = new ARXAnonymizer().anonymize(data, config);
        DataHandle output = result.getOutput(false);
        double before = risk(input);
        double after = risk(output);
        output.save(args[2], ',');
        System.out.println(String.format("risk %.4f, then %.4f", before, after));
    }

    private static double risk(DataHandle handle) {
        return handle.getRiskEstimator(ARXPopulationModel.create(Region.USA))
            .getSampleBasedReidentificationRisk().getAverageRisk();
    }
}
